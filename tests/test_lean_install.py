"""What works with NumPy and the small libraries alone, and what is said where more is needed."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from mlscale.cli.main import COMMANDS
from mlscale.errors import _EXTRAS, MissingLibraryError, extra_named

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
HEAVY = sorted({library for libraries in _EXTRAS.values() for library in libraries})
# Python finds None among its modules: the import of that library fails.
RUN = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from mlscale.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def mlscale(folder: Path, *words: str, without: list[str] = HEAVY) -> tuple[int, str, str]:
    """Status, standard output and standard error of the command without those libraries."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, ",".join(without), *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_each_extra_installs_the_libraries_that_its_message_names() -> None:
    # Against pyproject.toml, by the names under which the libraries are distributed.
    distributions = packages_distributions()
    for extra, libraries in _EXTRAS.items():
        required = " ".join(PYPROJECT["project"]["optional-dependencies"][extra])
        for library in libraries:
            names = distributions.get(library, [library])
            has_it = any(name in required for name in names)
            assert has_it or library == "dask", (extra, library)  # distributed has dask


def test_what_is_always_installed_is_in_no_extra() -> None:
    always = {name.partition(">")[0] for name in PYPROJECT["project"]["dependencies"]}
    assert "numpy" in always
    assert always.isdisjoint(HEAVY)


def test_advice_on_an_export(tmp_path: Path) -> None:
    status, printed, problems = mlscale(
        tmp_path, "advise", "h100-by-hand.csv", "--max-slowdown", "5", "--format", "json"
    )
    assert status == 0, problems
    assert "whole_run" in json.loads(printed)


def test_every_command_tells_its_options(tmp_path: Path) -> None:
    """The script for a shell is made of the options of all commands, as their help is."""
    status, printed, problems = mlscale(tmp_path, "completion", "bash")
    assert (status, problems) == (0, "")
    assert [command for command in COMMANDS if command not in printed] == []


def test_predictions_as_csv(tmp_path: Path) -> None:
    # 48 configurations (the model's card), and a header.
    words = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv", "-o", "predicted.csv")
    status, _, problems = mlscale(tmp_path, "predict", *words)
    assert status == 0, problems
    assert len((tmp_path / "predicted.csv").read_text("utf-8").splitlines()) == 49


def test_large_profiles_are_read_and_predicted_as_with_arrow(tmp_path: Path) -> None:
    """More than 1 MB and 5000 rows, for which Arrow is used where it is: the same to the byte."""
    from mlscale.data.datasets import path

    header, row = path("simulated-gcn3-profile.csv").read_text("utf-8").splitlines()[:2]
    place = header.split(",").index("kernel")
    cells = row.split(",")
    many = [",".join([*cells[:place], f"k{k}", *cells[place + 1 :]]) for k in range(6000)]
    (tmp_path / "many.csv").write_text("\n".join([header, *many, ""]), "utf-8")
    assert (tmp_path / "many.csv").stat().st_size > 1 << 20
    for name, without in (("lean.csv", HEAVY), ("arrow.csv", ["torch"])):
        words = ("simulated-gcn3.mlscale", "many.csv", "--at", "cu=8,engine=600,memory=700")
        status, _, problems = mlscale(tmp_path, "predict", *words, "-o", name, without=without)
        assert status == 0, problems
    lean = (tmp_path / "lean.csv").read_bytes()
    assert lean.count(b"\n") == 6001
    assert lean == (tmp_path / "arrow.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("train", "simulated-gcn3.parquet", "--base", "mid", "-o", "m.mlscale"), "train"),
        (("study", "errors", "simulated-gcn3.parquet"), "study"),
        (("report", "h100-by-hand.csv", "-o", "report.html"), "figures"),
        (("predict", "simulated-gcn3.mlscale", "simulated-gcn3.parquet"), "tables"),
    ],
)
def test_one_line_names_the_extra(tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    status, printed, problem = mlscale(tmp_path, *words)
    assert (status, printed) == (2, "")
    assert problem.startswith("mlscale: error: ")
    assert problem.endswith(f"install it with: pip install 'mlscale[{extra}]'\n")
    assert problem.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_demo_says_at_the_start_what_it_leaves_out(tmp_path: Path) -> None:
    status, printed, problems = mlscale(tmp_path, "demo", "-o", "demo")
    assert status == 0, problems
    assert printed.startswith("Not installed: matplotlib, pyarrow, sklearn, torch (pip install")
    assert "leaves out its second part" in printed.splitlines()[0]
    assert "Set the engine clock to " in printed


def test_a_larger_extra_is_named_only_where_it_has_the_library() -> None:
    def needs(library: str, extra: str) -> str:
        with pytest.raises(MissingLibraryError) as raised, extra_named("this", extra):
            raise ModuleNotFoundError(name=f"{library}.part")
        return str(raised.value)

    assert needs("pandas", "study").endswith("'mlscale[study]'")
    assert needs("torch", "study").endswith("'mlscale[train]'")


def test_a_library_of_no_extra_stays_missing() -> None:
    with pytest.raises(ModuleNotFoundError), extra_named("this"):
        raise ModuleNotFoundError(name="a_library_of_mine")
