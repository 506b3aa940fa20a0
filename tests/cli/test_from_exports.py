"""One command from a profiler's file to an answer, with the shipped model that fits."""

import json
import zipfile
from pathlib import Path

import pytest
from command import Capture, at_base, refuse, succeed
from synthetic import rocpd_files, tidy

from mlscale.data.datasets import path

BY_HAND = "h100-by-hand.csv"


def advice(capsys: Capture, *words: object) -> dict[str, object]:
    out, _ = succeed(capsys, "advise", *words, "--format", "json")
    document: dict[str, object] = json.loads(out)
    return document


def test_an_export_alone_is_enough(capsys: Capture) -> None:
    """The GPU, its CUs and clocks are in the file; one kernel is memory's, the other the CUs'."""
    document = advice(capsys, BY_HAND, "--max-slowdown", "5")
    assert document["device"] == "h100-sxm5"
    assert document["base"] == {"cu_count": 132, "engine_mhz": 1980.0, "memory_mhz": 2619.0}
    assert str(document["verdict"]).startswith("Set the engine")
    triad, gemm = document["kernels"]  # type: ignore[misc]  # two, by hand
    assert triad["best"]["engine_mhz"] < 1200
    assert gemm["best"]["engine_mhz"] > 1800
    assert gemm["slowdown_low_percent"] < gemm["slowdown_percent"] < gemm["slowdown_high_percent"]
    assert any("kernels" in warning for warning in document["warnings"])  # type: ignore[attr-defined]


def test_a_database_of_rocprofv3_is_enough(capsys: Capture, tmp_path: Path) -> None:
    """It says all but the clock that was set; the run is half a ms, by its two dispatches."""
    counters = {"SQ_WAVES": [6e4], "SQ_INSTS_VALU": [1.2e6], "GRBM_GUI_ACTIVE": [2.4e6],
                "FETCH_SIZE": [4e5], "WRITE_SIZE": [2e5]}  # fmt: skip
    run = [rocpd_files.Dispatch(n, end=251_000, grid=(1 << 20, 1, 1), counters=counters)
           for n in (1, 2)]  # fmt: skip
    database = rocpd_files.write_database(tmp_path / "app_results.db", run)
    assert "does not say engine_mhz; give" in refuse(capsys, tmp_path, "advise", database)
    document = advice(capsys, database, "--base", "engine=2100")
    assert document["device"] == "mi300x"
    assert document["base"] == {"cu_count": 304, "engine_mhz": 2100.0, "memory_mhz": 1300.0}
    page = tmp_path / "report.html"
    succeed(capsys, "report", database, "--base", "engine=2100", "-o", page)
    out, _ = succeed(
        capsys, "predict", database, *("--base", "engine=2100", "--at", "engine=2100"),
        *("--format", "json"),
    )  # fmt: skip
    [row] = json.loads(out)["predictions"]
    assert row["time_ms"] == pytest.approx(0.25)


def test_the_answer_comes_first(capsys: Capture) -> None:
    out, _ = succeed(capsys, "advise", BY_HAND)
    assert out.startswith("Set the engine clock to ")


def test_the_model_may_be_named_either_way(capsys: Capture) -> None:
    """`FILE --model MODEL` and `MODEL.mlscale FILE` are the same."""
    new = advice(capsys, BY_HAND, "--model", "kernels")
    assert new == advice(capsys, "kernels.mlscale", BY_HAND)


@pytest.mark.parametrize("words", [(BY_HAND, "--model", "nosuch"), ("nosuch.mlscale", BY_HAND)])
def test_a_model_that_is_none_names_those_that_ship(
    capsys: Capture, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The names are those of the files in models/."""
    message = refuse(capsys, tmp_path, "predict", *words)
    known = "there is no such model file; those that ship are h100-sms, kernels, runs, simulated-"
    assert known in message


@pytest.mark.parametrize(
    ("former", "instead"),
    [
        ("nvidia-time", "it is called 'kernels'"),
        ("nvidia-sampled.mlscale", "it is called 'runs'"),
        ("a100-nvidia-smi", "name none, or 'runs', and give a log at a second engine clock too"),
    ],
)
def test_a_model_of_before_says_what_to_use_instead(
    capsys: Capture, tmp_path: Path, former: str, instead: str
) -> None:
    message = refuse(capsys, tmp_path, "advise", BY_HAND, "--model", former)
    assert message.startswith(f"{former}: this model is not shipped any more; {instead}")
    of_folder = refuse(capsys, tmp_path, "advise", BY_HAND, "--model", f"models/{former}")
    assert of_folder.startswith(f"models/{former}: this model is not shipped any more; {instead}")


def test_show_tells_of_a_model_of_before_what_show_can(capsys: Capture, tmp_path: Path) -> None:
    """It cannot do without a model; a file of 0.2.0 that is still there is none that it reads."""
    assert refuse(capsys, tmp_path, "show", "a100") == "a100: this model is not shipped any more"
    file = tmp_path / "nvidia-time.mlscale"
    with zipfile.ZipFile(path("kernels.mlscale")) as new, zipfile.ZipFile(file, "w") as old:
        for name in new.namelist():
            old.writestr(
                name, new.read(name).replace(b'"format_version": 2', b'"format_version": 1')
            )
    message = refuse(capsys, tmp_path, "show", file)
    assert "has model format 1" in message
    assert message.endswith("; this model is not shipped any more; it is called 'kernels'")


def test_a_file_of_a_shipped_models_name_comes_first(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table called as a model is a table."""
    file = details(tmp_path, '"DRAM Throughput","%","40.0"')
    monkeypatch.chdir(tmp_path)
    file.rename("kernels")
    given = ("--device", "h100-sxm5", "--base", "engine=1980,memory=2619")
    assert advice(capsys, "kernels", *given)["device"] == "h100-sxm5"


def test_clocks_far_below_are_told(capsys: Capture) -> None:
    """The training tables went down to 0.41 of their highest clock; 400 MHz is 0.2 of 1980."""
    out, _ = succeed(capsys, "predict", BY_HAND, "--at", "engine=400")
    assert "warning: engine_mhz 400 is below" in out
    assert "extrapolated" in out
    near, _ = succeed(capsys, "predict", BY_HAND, "--at", "engine=1200")
    assert "extrapolated" not in near


def test_with_its_power_the_clock_of_least_energy(capsys: Capture) -> None:
    """Time and power are of other GPUs' kernels; what that assumes is told."""
    document = advice(capsys, BY_HAND, "--power", "520")
    assert document["objective"] == "energy"
    for kernel in document["kernels"]:  # type: ignore[attr-defined]
        best = kernel["best"]
        # mJ from ms and W, by definition; below the base's 520 W at a lower clock.
        assert best["energy_mj"] == pytest.approx(best["time_ms"] * best["power_w"])
        assert best["engine_mhz"] < 1980
        assert best["power_w"] < 520
        assert kernel["saving_low_percent"] < kernel["saving_percent"]
        assert kernel["saving_percent"] < kernel["saving_high_percent"]
    assumed = (
        "power from one clock alone, learnt on 8 other GPUs: "
        "power at a second clock (--also) tells more"
    )
    assert assumed in document["warnings"]  # type: ignore[operator]


def test_power_of_also_moves_the_power(capsys: Capture, tmp_path: Path) -> None:
    """Of the kernel of the file written by hand, power at half of the clock: low, and high."""
    profile = json.loads(succeed(capsys, "predict", BY_HAND, "--format", "json")[0])
    kernel = profile["predictions"][0]["kernel"]
    also = tmp_path / "also.csv"
    watts = []
    for power_w in (200, 300):
        also.write_text(
            "kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
            f'"{kernel}",132,1005,2619,1.2,{power_w}\n'
        )
        document = succeed(
            capsys,
            *("predict", BY_HAND, "--power", "520", "--also", also),
            *("--at", "engine=1005,memory=2619", "--at", "engine=1500,memory=2619"),
            *("--format", "json"),
        )[0]
        rows = [r for r in json.loads(document)["predictions"] if r["kernel"] == kernel]
        watts.append([row["power_w"] for row in rows])
    assert [own[0] for own in watts] == pytest.approx(
        [200, 300], rel=0.005
    )  # as measured, to its noise
    assert watts[0][1] < watts[1][1]  # and in between


def test_several_tables_are_no_files_of_one_run(capsys: Capture, tmp_path: Path) -> None:
    tables = [tidy.write_csv(tmp_path / name, at_base(tidy.rows())) for name in ("a.csv", "b.csv")]
    for given in (tables, [BY_HAND, tables[0], "--model", "kernels"]):
        message = refuse(capsys, tmp_path, "predict", *given)
        assert "a.csv: is a table, and several files are exports of one run" in message
    message = refuse(capsys, tmp_path, "import", tables[0], "-o", tmp_path / "new.csv")
    assert "a.csv: is a tidy table; other commands take it as it is" in message


def test_predict_and_report_take_the_same_file(capsys: Capture, tmp_path: Path) -> None:
    out, _ = succeed(capsys, "predict", BY_HAND, "--at", "engine=990", "--format", "json")
    times = {row["kernel"][:5]: row["time_factor"] for row in json.loads(out)["predictions"]}
    assert times["triad"] < 1.3
    assert times["gemm_"] > 1.8
    [run] = json.loads(out)["whole_run"]
    each = [row["time_ms"] for row in json.loads(out)["predictions"]]
    assert run["time_ms"] == pytest.approx(sum(each), rel=1e-12)  # a launch of each, by hand
    assert (run["power_w"], run["flags"]) == (None, [])
    table, _ = succeed(capsys, "predict", BY_HAND, "--at", "engine=990")
    assert [line.split()[:3] for line in table.splitlines()[4:5]] == [["whole", "run", "132"]]
    succeed(capsys, "report", BY_HAND, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "mlscale report h100-by-hand.csv -o report.html" in page
    assert "kernels.mlscale" in page


def test_the_report_shows_the_commands_where_they_are_asked_for(
    capsys: Capture, tmp_path: Path
) -> None:
    """Spelt as in tests/advice/test_commands.py; the page says the command that made it."""
    pages = []
    for more in ([], ["--commands"]):
        succeed(capsys, "report", BY_HAND, "--max-slowdown", 5, *more, "-o", tmp_path / "r.html")
        pages.append((tmp_path / "r.html").read_text(encoding="utf-8"))
    plain, asked = pages
    assert "nvidia-smi" not in plain
    assert "nvidia-smi -i 0 -lgc 1830,1830\n# to undo it\nnvidia-smi -i 0 -rgc" in asked
    assert "--max-slowdown 5 --commands -o r.html" in asked


def details(folder: Path, *metrics: str) -> Path:
    """A file in the form of ncu's details page, of one kernel, with its time and these metrics."""
    file = folder / "details.csv"
    cells = '"0","1","app","node","k(int)","1","7","(32, 1, 1)","(9, 1, 1)","0","9.0"'
    rows = [f'{cells},"Speed Of Light",{cell}' for cell in ('"Duration","us","9.5"', *metrics)]
    header = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
        '"Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",'
        '"Metric Value"'
    )
    file.write_text("\n".join([header, *rows, ""]))
    return file


@pytest.mark.parametrize("command", ["predict", "advise", "report"])
def test_all_that_lacks_is_asked_for_at_once(capsys: Capture, tmp_path: Path, command: str) -> None:
    """ncu's details page names neither GPU nor memory clock; written by hand in its form."""
    file = details(tmp_path, '"DRAM Throughput","%","40.0"')
    message = refuse(capsys, tmp_path, command, file, *(["-o", "r"] if command == "report" else []))
    assert "the GPU, engine_mhz, memory_mhz" in message
    assert "--device NAME --base engine=…,memory=…" in message
    assert "DRAM" not in message
    settings = ["--device", "h100-sxm5", "--base", "engine=1980,memory=2619"]
    succeed(
        capsys, command, file, *settings, *(["-o", tmp_path / "r"] if command == "report" else [])
    )


@pytest.mark.usefixtures("forget_own_devices")
def test_of_a_gpu_that_the_device_table_lacks_the_first_message_leads_to_an_answer(
    capsys: Capture, tmp_path: Path
) -> None:
    """Counters need peaks, which a device file tells, and with them the CUs."""
    file = details(tmp_path, '"DRAM Throughput","%","40.0"')
    device_file = "; of a GPU that the device table lacks cu=… too, or a device file"
    assert device_file in refuse(capsys, tmp_path, "advise", file)
    named = refuse(capsys, tmp_path, "advise", file, "--device", "rtx6090")
    assert "does not say cu_count, engine_mhz, memory_mhz; give --base cu=…,engine=…,mem" in named
    own = tmp_path / "own.json"
    shown, _ = succeed(capsys, "devices", "show", "h100-sxm5", "--format", "json")
    names = {"key": "rtx6090", "name": "RTX 6090", "aliases": [], "pci_ids": []}
    own.write_text(json.dumps({**json.loads(shown), **names}))
    succeed(capsys, "advise", file, "--device", own, "--base", "engine=1980,memory=2619")
