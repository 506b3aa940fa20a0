"""mlscale literature nagasaka: tables, JSON, figures, warnings and bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import powered, tidy

from mlscale.cli.main import main
from mlscale.papers.nagasaka_inputs import SETS

COMMAND = ("literature", "nagasaka")
QUICK = ("--shuffles", 1)
TEXTURE = np.where(np.arange(24) == 3, 5e7, 1e6)


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Write made kernels, a file of that name; counters may be replaced or left out."""

    def write(
        count: int = 24, per_application: int = 1, name: str = "made", **replaced: Any
    ) -> Path:
        made = powered.rows(powered.profiles(count, per_application, **replaced))
        return tidy.write_csv(tmp_path / f"{name}.csv", made)

    return write


class TestJson:
    def test_document(self, capsys: Capture, table: Callable[..., Path]) -> None:
        path = table(tex_cache_transactions=TEXTURE)
        out, err = succeed(capsys, *COMMAND, path, "--json", "--shuffles", 2)
        document = json.loads(out)
        assert (document["literature"], document["counters"], err) == ("nagasaka", "Full", "")
        cases = [("all", 24), ("as in the paper", 23)]
        rows = document["rows"]
        assert [(r["kernels"], r["n_kernels"], r["folds_by"], r["counters"]) for r in rows] == [
            (*case, by, name) for case in cases for by in ("kernel", "application") for name in SETS
        ]
        for row in rows:
            assert row["table"] == "made"
            assert row["base"] == {"cu_count": 2, "engine_mhz": 1000, "memory_mhz": 1000}
            assert row["n_shuffles"] == len(row["mape_by_shuffle"]) == 2
            assert row["mape"] == pytest.approx(np.mean(row["mape_by_shuffle"]))
            assert row["worst_kernel_mape"] >= row["median_kernel"]
            # The made power is a law of these counters, and Full holds their parts (closed form).
            known = row["counters"] == "Full" or row["counters"].startswith("Mem/Inst")
            assert (row["mape"] < 0.1) == known
        assert [m["kernels"] for m in document["models"]] == ["all", "as in the paper"]
        assert [m["left_out"] for m in document["models"]] == [[], ["k3"]]
        energy = document["models"][0]["energy_nj"]
        assert (energy["gld"], energy["instructions"]) == pytest.approx((1.0, 0.3), rel=0.01)
        estimates = [e for e in document["estimates"] if e["kernels"] == "all"]
        assert [e["kernel"] for e in estimates] == [f"k{k}" for k in range(24)]
        actual = powered.profiles(24).power_w
        assert [e["actual_w"] for e in estimates] == pytest.approx(actual)
        assert [e["estimated_w"] for e in estimates] == pytest.approx(actual, rel=0.01)
        assert [(u["kernel"], u["counter"]) for u in document["unseen"]] == [
            ("k3", "tex_cache_transactions")
        ]

    def test_other_counters_and_base(self, capsys: Capture, table: Callable[..., Path]) -> None:
        base = "engine=1000,memory=1000"
        out, _ = succeed(
            capsys, *COMMAND, table(), "--json", *QUICK, "--counters", "Mem/Inst", "--base", base
        )
        model = json.loads(out)["models"][0]
        assert list(model["energy_nj"]) == ["mem", "instructions"]
        assert list(model["contribution_percent"]) == ["mem", "instructions", "intercept"]
        assert sum(model["contribution_percent"].values()) == pytest.approx(100)

    def test_a_penalty_of_ones_own(self, capsys: Capture, table: Callable[..., Path]) -> None:
        out, _ = succeed(capsys, *COMMAND, table(), "--json", *QUICK, "--penalty", 2.5)
        document = json.loads(out)
        assert {model["penalty"] for model in document["models"]} == {2.5}
        assert {row["penalty_median"] for row in document["rows"]} == {2.5}

    def test_the_same_twice(self, capsys: Capture, table: Callable[..., Path]) -> None:
        first, again = (succeed(capsys, *COMMAND, table(12), "--json", *QUICK) for _ in range(2))
        assert first == again


def test_text(capsys: Capture, table: Callable[..., Path]) -> None:
    loads = np.zeros(24)
    loads[5] = 1e6
    one = table(tex_cache_transactions=TEXTURE, local_load_transactions=loads)
    out, _ = succeed(capsys, *COMMAND, one, table(name="other"), *QUICK)
    for words in (
        "made: 24 kernels (all) on made-gpu, base cu=2,engine=1000,memory=1000, 1 shuffle;",
        "made: 23 kernels (as in the paper)",
        "\nwithout k3: texture reads, or fewer than 4 blocks per CU\n",
        "other: 24 kernels (all)",
        "median   p90  worst  worst kernel",
        "W²",
        "nJ/event",
        "4.7 %",
        "made: the model cannot see all of k3\n  tex_cache_transactions: it reads textures",
        "made: the model cannot see all of k5\n  local_load: it was zero in all of the training",
    ):
        assert words in out
    for name in SETS:
        assert sum(line.startswith(f"{name}  ") for line in out.splitlines()) >= 4


def test_figures(capsys: Capture, tmp_path: Path, table: Callable[..., Path]) -> None:
    path, folder = table(tex_cache_transactions=TEXTURE), tmp_path / "figures"
    out, _ = succeed(capsys, *COMMAND, path, *QUICK, "-o", folder)
    names = [f"made-nagasaka-fig{n}.{kind}" for n in (2, 3, 4, 5) for kind in ("png", "svg")]
    assert sorted(file.name for file in folder.iterdir()) == names
    assert [f"written: {folder / name}" in out for name in names] == [True] * 8
    for name in names:
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    texts = {n: (folder / f"made-nagasaka-fig{n}.svg").read_text() for n in (2, 3, 4, 5)}
    # matplotlib writes each text into the SVG as a comment.
    assert "average squared error [W²]" in texts[2]
    assert "average power [W]" in texts[3]
    assert "k3 *" not in texts[3]
    assert "k3 *" in texts[5]
    assert "intercept" in texts[4]


class TestWarnings:
    def test_sets_without_counters(self, capsys: Capture, table: Callable[..., Path]) -> None:
        path = table(cf_executed=None)
        out, err = succeed(capsys, *COMMAND, path, *QUICK, "--counters", "Mem/Inst", "--json")
        names = {row["counters"] for row in json.loads(out)["rows"]}
        assert names == set(SETS) - {"Full", "Mem/Inst/Branch"}
        assert (
            "left out are the sets Mem/Inst/Branch, Full: there is no column 'cf_executed'" in err
        )
        assert err.count("\n") == 1

    def test_too_few_kernels_as_in_the_paper(
        self, capsys: Capture, table: Callable[..., Path]
    ) -> None:
        blocks = np.where(np.arange(24) < 16, 7, 8)  # 2 CUs need 8
        out, err = succeed(capsys, *COMMAND, table(workgroups=blocks), *QUICK, "--json")
        assert {row["kernels"] for row in json.loads(out)["rows"]} == {"all"}
        assert "8 applications remain" in err
        assert err.count("\n") == 1


class TestBadInput:
    def refuse(self, capsys: Capture, tmp_path: Path, *arguments: object) -> str:
        figures = ("-o", tmp_path / "figures")
        message = refuse(capsys, tmp_path, *COMMAND, *arguments, *figures)
        assert not (tmp_path / "figures").exists()
        return message

    @pytest.mark.parametrize(
        ("replaced", "problem"),
        [
            ({"inst_executed": None, "l2_read_transactions": None}, "'l2_read_transactions'"),
            ({"cf_executed": None}, "does not give the counters of the set 'Full'; it gives Mem"),
            ({"branch_efficiency": np.full(24, 99.0)}, "kernel 'k0', counter 'branch_efficiency'"),
        ],
    )
    def test_counters(
        self,
        capsys: Capture,
        tmp_path: Path,
        table: Callable[..., Path],
        replaced: dict[str, Any],
        problem: str,
    ) -> None:
        path = table(**replaced)
        # Not refuse(): warnings stand before the complaint.
        assert main([*COMMAND, str(path), "-o", str(tmp_path / "figures")]) == 2
        out, err = capsys.readouterr()
        complaint = err.splitlines()[-1]
        assert out == ""
        assert complaint.startswith(f"mlscale: error: {path}: ")
        assert problem in complaint
        assert not (tmp_path / "figures").exists()

    def test_no_power(self, capsys: Capture, tmp_path: Path) -> None:
        rows = [
            {k: v for k, v in row.items() if k != "power_w"}
            for row in powered.rows(powered.profiles(12))
        ]
        path = tidy.write_csv(tmp_path / "made.csv", rows)
        message = self.refuse(capsys, tmp_path, path)
        assert message.startswith(f"{path}: ")
        assert "'power_w'" in message

    def test_too_few_applications(
        self, capsys: Capture, tmp_path: Path, table: Callable[..., Path]
    ) -> None:
        message = self.refuse(capsys, tmp_path, table(18, per_application=2))
        assert "ten folds need kernels of 10 applications, not 9" in message

    def test_two_tables_of_one_name(
        self, capsys: Capture, tmp_path: Path, table: Callable[..., Path]
    ) -> None:
        assert "two tables are named 'made'" in self.refuse(capsys, tmp_path, table(), table())

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["--base", "engine=900,memory=1000"], "made.csv: engine_mhz 900 is not on the grid"),
            (["--base", "engine=high"], "argument --base: 'high' in 'engine=high' is not a number"),
            (["--counters", "Most"], "'Most'"),
            (["--shuffles", "0"], "'0'"),
        ],
    )
    def test_bad_choice(
        self,
        capsys: Capture,
        tmp_path: Path,
        table: Callable[..., Path],
        arguments: list[str],
        problem: str,
    ) -> None:
        assert problem in self.refuse(capsys, tmp_path, table(), *arguments)

    def test_no_file(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tmp_path / "nothing.csv")
        assert "nothing.csv: cannot be read" in message
