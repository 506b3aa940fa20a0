"""The tables and figures of docs/trust.md are those of docs/tables, which commands wrote."""

import csv
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "trust.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
FOUR = ("gtx980-low", "gtx980-high", "gtx1080ti", "p100")


def rows(name: str) -> list[dict[str, str]]:
    with (DOCS / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown(heading: str) -> list[list[str]]:
    """The cells of the Markdown table whose header begins so."""
    lines = PAGE[PAGE.index(f"| {heading}") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def agrees(cell: str, value: str) -> bool:
    """Whether a cell is a CSV's value to as many digits; '-' or nothing is an empty one."""
    if cell in ("", "-") or not value:
        return cell in ("", "-") and not value
    digits = len(cell.partition(".")[2])
    return float(cell) == pytest.approx(float(value), abs=0.5 * 10**-digits + 0.0051)


def check(heading: str, wanted: list[list[str]], first: int = 1) -> None:
    """Compare a table, from its column `first` on."""
    found = shown(heading)
    assert len(found) == len(wanted)
    for cells, values in zip(found, wanted, strict=True):
        assert len(cells) == len(values) + first
        for cell, value in zip(cells[first:], values, strict=True):
            assert agrees(cell, value), (cells, values)


def picked(name: str, columns: list[str], **wanted: str) -> list[str]:
    """Columns of the only row that has these values."""
    (row,) = (r for r in rows(name) if all(r[key] == value for key, value in wanted.items()))
    return [row[column] for column in columns]


def test_two_readings_by_gpu() -> None:
    quantities = ("time", "power", "energy")
    columns = ["runs", *(f"all from 0.45, {q}" for q in quantities)]
    columns += [*(f"intervals hold, {q}" for q in quantities), "regret"]
    check("GPU, left out", [[row[name] for name in columns] for row in rows("by-gpu")])


def test_readings_and_rules() -> None:
    by_readings = {row["read at"]: row for row in rows("readings")}
    columns = [f"all from 0.45, {quantity}" for quantity in ("time", "power", "energy")]
    names = [cells[0] for cells in shown("Read at")]
    wanted = [[by_readings[name][column] for column in (*columns, "regret")] for name in names]
    check("Read at", wanted)
    means = re.findall(r"are ([\d.]+) % \(advised\), ([\d.]+) % .* and ([\d.]+) % \(highest", TEXT)
    claim = r"took ([\d.]+) % more energy than the best one; the highest clock took ([\d.]+) %"
    assert all(map(agrees, re.findall(claim, TEXT)[0], (means[0][0], means[0][2])))
    kinds = ("1, 0.6", "1, 0.6: straight line", "highest clock")
    assert means == [tuple(by_readings[name]["regret"] for name in kinds)]


def test_zones_and_intervals() -> None:
    def numbers(zone: str, column: str, *quantities: str) -> list[str]:
        return [*(picked("intervals", [column], quantity=q, clocks=zone)[0] for q in quantities)]

    said = TEXT[TEXT.index("**Between the readings**") : TEXT.index("([intervals.csv]")]
    both = [numbers(z, "off by", "time", "power") for z in ("between", "0.75 to 1", "0.5 to 0.75")]
    found = re.findall(
        r"(?:is|are) ([\d.]+) (?:%|and).*? ([\d.]+) %|half of it ([\d.]+) and ([\d.]+) %", said
    )
    assert [[n for n in one if n] for one in found] == both
    low = numbers("below 0.5", "off by", "time", "power")
    columns = ["below 0.5, time", "below 0.5, power"]
    low += picked("by-gpu", columns, GPU="rtx-5000-ada")
    assert "time is {} % off, power {} %; on the RTX 5000 Ada {} and {} %".format(*low) in TEXT
    held = numbers("all from 0.45", "intervals hold", "time", "power", "energy")
    assert "hold {} % of times, {} % of powers and {} % of energies".format(*held) in TEXT
    on = numbers("all from 0.45", "GPUs held", "time", "power", "energy")
    claims = (
        "held time on {} GPUs, power on {}, energy on {}.",
        "for time on {} GPUs, for power on {}, for energy on {}.",
    )
    assert all(claim.format(*on) in TEXT for claim in claims)
    (one,) = (row for row in rows("readings") if row["read at"] == "1")
    assert f"power to {one['all from 0.45, power']} %" in TEXT


def test_how_sure() -> None:
    names = ("high", "true of these", "on GPUs", "true of all")
    found, every = shown("Read at (of the highest clock) | limit"), rows("sureness")
    wanted = [row for row in every if row["limit of slowdown"] in ("none", "5 %")]
    assert [cells[:2] for cells in found] == [
        [row["read at"], row["limit of slowdown"]] for row in wanted
    ]
    assert [cells[2:] for cells in found] == [[row[name] for name in names] for row in wanted]
    without = [row for row in every if row["limit of slowdown"] == "none"]
    within = [row for row in every if row not in without]

    def ends(name: str, among: list[dict[str, str]]) -> str:
        values = sorted({int(row[name]) for row in among})
        return f"{values[0]} to {values[-1]} %" if len(values) > 1 else f"{values[0]} %"

    high, true = ends("high", within), ends("true of these", within)
    assert f"answers are high**, {high} of them, and true in {true}." in TEXT
    assert f"is true of {true} of answers within a limit" in TEXT
    assert f"Of all answers {ends('true of all', within)} were true" in TEXT
    assert f"limit {ends('high', without)} are high.**" in TEXT
    assert f"wrong: {ends('true of all', without)} of all were true" in TEXT


def test_limits() -> None:
    wanted = []
    for limit in ("2 %", "5 %", "10 %"):
        ways = [
            picked("limits", ["over it by 1 point", "energy saved"], limit=limit, clock=clock)
            for clock in ("cautious", "central", "possible")
        ]
        wanted.append([*ways[0], *ways[1], ways[2][1]])
    check("Limit |", wanted)


def test_limits_from_a_profile() -> None:
    """Means over the four tables, of the cautious clock."""
    columns = ("passes_limit_percent", "saving_mean", "best_saving_mean")
    means = {}
    for limit in (2, 5):
        chosen = [row for row in rows(f"advice-within-{limit}") if row["rule"] == "cautious"]
        assert [row["table"] for row in chosen] == list(FOUR)
        means[limit] = [sum(float(row[name]) for row in chosen) / 4 for name in columns]
    five = re.findall(r"passes 5 % in ([\d.]+) % .*? saves ([\d.]+) % of ([\d.]+) % possible", TEXT)
    two = re.findall(r"Under 2 % it saves ([\d.]+) % of ([\d.]+) %", TEXT)
    assert [float(n) for n in five[0]] == pytest.approx(means[5], abs=0.051)
    assert [float(n) for n in two[0]] == pytest.approx(means[2][1:], abs=0.051)


def test_caps() -> None:
    columns = ["runs", "caps", "time", "energy", "not kept"]
    columns += [f"S {size}: {what}" for size in ("<= 0.7", "> 1.2") for what in ("caps", "time")]
    low = list(rows("caps")[0])[-2:]  # below what was read
    gpus = [row for row in rows("caps") if "by all clocks" not in row["GPU"]]
    check("GPU | runs | caps", [[row[name] for name in (*columns, *low)] for row in gpus])
    flat, steep, below = (
        sorted((row[name] for row in gpus if row[name]), key=float)
        for name in ("S <= 0.7: time", "S > 1.2: time", low[1])
    )
    assert f"time is {flat[0]} to {flat[-1]} % off. **Where S is above 1.2**" in TEXT
    assert f"it is up to {steep[-1]} %" in TEXT
    assert f"**Below what was read** time is {below[0]} to {below[-1]} % off" in TEXT
    watts = {row["GPU"]: row for row in rows("caps-by-watts")}
    times = [float(row["time"]) for row in watts.values()]
    assert f"Over {len(times)} sets time was {min(times)} to {max(times)} % off" in TEXT
    worst = [watts[gpu]["worst"] for gpu in ("a40", "rtx-5000-ada", "rtx-4000-ada")]
    assert "was {} % off on an A40, {} % on an RTX 5000 Ada, {} %".format(*worst) in TEXT


def test_advice_from_profiles() -> None:
    def regrets(advisor: str, objective: str = "energy") -> list[str]:
        names = {"advisor": advisor, "objective": objective}
        return [picked("advice", ["regret_mean"], table=table, **names)[0] for table in FOUR]

    kinds = ("bottleneck", "best-fixed", "highest-clocks")
    check("Regret of energy", [regrets(kind) for kind in kinds])
    of_runs = [
        picked("advice-of-runs", ["regret_mean"], table=t, advisor="bottleneck", objective="energy")
        for t in FOUR
    ]
    said = "energy regret is {}, {}, {} and {} % on the"
    assert said.format(*(found[0] for found in of_runs)) in TEXT
    ours, highest = regrets("bottleneck", "ed2p"), regrets("highest-clocks", "ed2p")
    worse = [t for t, a, b in zip(FOUR, ours, highest, strict=True) if float(a) > float(b)]
    assert worse == ["gtx980-low", "gtx1080ti"]
    said = re.findall(
        r"regret of ([\d.]+) % against ([\d.]+) %, .*? with ([\d.]+) % against ([\d.]+)", TEXT
    )
    assert all(map(agrees, said[0], (ours[0], highest[0], ours[2], highest[2])))


def test_gpus_without_training_data() -> None:
    columns = ["n_kernels", "mape", "standard_error", "worst_kernel_mape", "coverage"]
    check("Table | kernels", [picked("new-gpus", columns, table=table) for table in FOUR])


def test_counters_of_an_rtx_3080_ti() -> None:
    def cells(readings: str) -> list[list[str]]:
        groups = ["below 30 %", "30 to 80 %", "above 80 %", "all"]
        row = picked("counters-new", groups, table="rtx3080ti", region="fair", readings=readings)
        return [re.findall(r"[\d.]+", cell) for cell in row]

    wanted = [
        [number, off, held, again, holds]
        for (number, off, _, held), (_, again, _, holds) in zip(
            cells("one"), cells("two"), strict=True
        )
    ]
    check("use of DRAM | kernels", wanted)


def test_new_kernels() -> None:
    found = {}
    for quantity in ("time", "power"):
        two = [
            picked(
                "new-kernels",
                ["mape", "coverage"],
                table=t,
                predictor="bottleneck",
                quantity=quantity,
            )
            for t in FOUR
        ]
        found[quantity] = [[float(n) for n in column] for column in zip(*two, strict=True)]
    ends = r"([\d.]+) to ([\d.]+) %"
    claim = rf"is {ends} off in time and {ends} in power on these tables. Its intervals hold {ends}"
    (said,) = re.findall(claim, TEXT)
    held = found["time"][1] + found["power"][1]
    groups = (found["time"][0], found["power"][0], held)
    wanted = [end(values) for values in groups for end in (min, max)]
    assert [float(n) for n in said] == pytest.approx(wanted, abs=0.056)


def test_fewer_sms() -> None:
    columns = ["n_kernels", "mape", "standard_error"]

    def row(file: str, table: str) -> list[str]:
        wanted = {"table": table, "quantity": "time"}
        ours = picked(file, [*columns, "coverage"], predictor="bottleneck", **wanted)
        wu = [
            r["mape"]
            for r in rows(file)
            if (r["table"], r["predictor"], r["quantity"]) == (table, "wu", "time")
        ]
        return [*ours[:3], min(wu, key=float, default=""), ours[3]]

    wanted = [row("fewer-sms", f"{gpu}-suite") for gpu in ("h100", "h200")]
    wanted += [row("fewer-sms-of-a-new-gpu", f"{gpu}-suite") for gpu in ("h100", "h200")]
    check("Predicted from all", [*wanted, row("new-kernels", "simulated-gcn3")])


def test_what_is_not_tested_well() -> None:
    def off(read: str) -> str:
        wanted = {"GPU": "rx580", "read at": read, "clocks": "all from 0.45"}
        return picked("power-alone", ["off by"], **wanted)[0]

    assert f"{off('1, 0.6')} % off from two readings, {off('1')} % from one" in TEXT
    ada = {
        row[""]: float(row["predicted"]) / float(row["measured"]) for row in rows("rtx-4000-ada")
    }
    said = re.findall(
        r"time came out ([\d.]+) % too short, power ([\d.]+) % too high and energy ([\d.]+) % too",
        TEXT,
    )
    wanted = [100 * (1 - ada["time"]), 100 * (ada["power"] - 1), 100 * (1 - ada["energy"])]
    assert [float(n) for n in said[0]] == pytest.approx(wanted, abs=0.06)


def test_the_page_is_short_and_shows_pictures() -> None:
    prose = [line for line in PAGE.splitlines() if not line.startswith("|")]
    assert len(" ".join(prose).split()) <= 2420
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert len(pictures) >= 4
    assert all((DOCS / file).stat().st_size < 60_000 for file in pictures)
