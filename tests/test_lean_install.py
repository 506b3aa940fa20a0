"""What is imported for which work, and what works with NumPy and the small libraries alone.

Expected: against pyproject.toml, the shipped models' cards, and the same command with all there is.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from synthetic import bottleneck_kernels

import mlscale as mlscale_package
from mlscale import save, train
from mlscale.cli.main import COMMANDS
from mlscale.data.datasets import path
from mlscale.errors import _EXTRAS, MissingLibraryError, extra_named

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
OF_EXTRAS = sorted({library for libraries in _EXTRAS.values() for library in libraries})
HEAVY = {*OF_EXTRAS, "tqdm", "requests"}
# Python finds None among its modules: the import of that library fails.
RUN = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from mlscale.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
NAMED = {"dask": ["distributed"], "pynvml": ["nvidia-ml-py"]}  # what has them
MOST_MODULES, MOST_LINES = 75, 20_300  # what `advise` loads: half of the package's lines
SIMULATED = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")


def mlscale(folder: Path, *words: str, without: list[str] = OF_EXTRAS) -> tuple[int, str, str]:
    """Status, standard output and standard error of the command without those libraries."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, ",".join(without), *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def imported(*words: str) -> set[str]:
    """The modules that Python imports for a command or a script, and their packages."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE)
    return {*names, *(name.partition(".")[0] for name in names)}


class TestImports:
    def test_the_package_alone_imports_no_numpy(self) -> None:
        found = imported("-c", "import mlscale")
        assert "mlscale" in found
        assert found.isdisjoint(HEAVY | {"numpy"})

    def test_every_public_name_imports_nothing_heavy(self) -> None:
        assert imported("-c", "from mlscale import *").isdisjoint(HEAVY)

    @pytest.mark.parametrize("words", [("predict",), ("advise",), ("predict", "--json")])
    def test_commands_on_a_table_import_nothing_heavy(self, words: tuple[str, ...]) -> None:
        found = imported("-m", "mlscale", words[0], *SIMULATED, *words[1:])
        assert {"mlscale", "numpy"} <= found  # so the list was read
        assert found.isdisjoint(HEAVY)
        assert found.isdisjoint({"mlscale.readers.reading", "mlscale.papers.wang_chu"})

    def test_what_was_trained_with_torch_predicts_without(self, tmp_path: Path) -> None:
        table, base = bottleneck_kernels.measurements(4), bottleneck_kernels.CLOCKS.mid
        model, profile = tmp_path / "m.mlscale", tmp_path / "profile.csv"
        save(train(table, base, "bottleneck"), model)
        table.select([0]).write(profile)
        call = f"mlscale.predict({str(profile)!r}, model={str(model)!r})"
        script = f"import mlscale; assert len({call}) == 2"
        assert imported("-c", script).isdisjoint(HEAVY)

    def test_a_large_export_is_read_without_pandas(self, tmp_path: Path) -> None:
        """Arrow's own conversions to and from NumPy import it."""
        header = "Index,KernelName,grd,wgr,SQ_WAVES,BeginNs,EndNs\n"
        rows = "".join(f'{i},"f(int)",640,64,"1,000",{i}000,{i}900\n' for i in range(1, 10_000))
        (tmp_path / "run.csv").write_text(header + rows)
        script = (
            "import sys, mlscale; mlscale.import_profile(sys.argv[1], device='made-gpu', "
            "base={'cu_count': 4, 'engine_mhz': 1000, 'memory_mhz': 500})"
        )
        assert "pandas" not in imported("-c", script, str(tmp_path / "run.csv"))

    @pytest.mark.parametrize(
        "words",
        [
            ["h100-by-hand.csv"],
            ["training-step-ncu.csv", "training-step-trace.json.gz", "--power", "300",
             "--base", "engine=1410,memory=1593"],
        ],
        ids=["two kernels", "training step"],
    )  # fmt: skip
    def test_advise_loads_a_part_of_the_package(self, words: list[str]) -> None:
        """Caps, commands, the report, studies and training are left to those who ask for them."""
        files = [str(path(word)) if "." in word else word for word in words]
        package = Path(mlscale_package.__file__).parent
        found = imported("-m", "mlscale", "advise", *files)
        places = [package.parent / f"{name.replace('.', '/')}.py" for name in found]
        places += [package.parent / name.replace(".", "/") / "__init__.py" for name in found]
        loaded = {place for place in places if place.is_relative_to(package) and place.is_file()}
        assert {package / "advice" / "advise.py"} <= loaded
        assert len(loaded) <= MOST_MODULES
        assert sum(place.read_text("utf-8").count("\n") for place in loaded) <= MOST_LINES


def test_each_extra_installs_the_libraries_that_its_message_names() -> None:
    # By the names under which the libraries are distributed.
    distributions = packages_distributions()
    for extra, libraries in _EXTRAS.items():
        required = " ".join(PYPROJECT["project"]["optional-dependencies"][extra])
        for library in libraries:
            names = distributions.get(library, [library]) + NAMED.get(library, [])
            assert any(name in required for name in names), (extra, library)


def test_what_is_always_installed_is_in_no_extra() -> None:
    always = {name.partition(">")[0] for name in PYPROJECT["project"]["dependencies"]}
    assert "numpy" in always
    assert always.isdisjoint(OF_EXTRAS)


def test_advice_on_an_export(tmp_path: Path) -> None:
    status, printed, problems = mlscale(tmp_path, "advise", "h100-by-hand.csv", "--json")
    assert status == 0, problems
    assert "answer" in json.loads(printed)


def test_a_page_of_an_export(tmp_path: Path) -> None:
    status, _, problems = mlscale(tmp_path, "report", "h100-by-hand.csv", "-o", "page.html")
    assert status == 0, problems
    assert "Set 1905 MHz" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_every_command_tells_its_options(tmp_path: Path) -> None:
    """The script for a shell is made of the options of all commands, as their help is."""
    status, printed, problems = mlscale(tmp_path, "completion", "bash")
    assert (status, problems) == (0, "")
    assert [command for command in COMMANDS if command not in printed] == []


def test_large_profiles_are_read_and_predicted_as_with_arrow(tmp_path: Path) -> None:
    """More than 1 MB and 5000 rows, for which Arrow is used where it is."""
    header, row = path("simulated-gcn3-profile.csv").read_text("utf-8").splitlines()[:2]
    place = header.split(",").index("kernel")
    cells = row.split(",")
    many = [",".join([*cells[:place], f"k{k}", *cells[place + 1 :]]) for k in range(6000)]
    (tmp_path / "many.csv").write_text("\n".join([header, *many, ""]), "utf-8")
    assert (tmp_path / "many.csv").stat().st_size > 1 << 20
    rows = []
    for name, without in (("lean.csv", OF_EXTRAS), ("arrow.csv", ["torch"])):
        words = (SIMULATED[0], "many.csv", "--at", "cu=8,engine=600,memory=700", "-o", name)
        status, _, problems = mlscale(tmp_path, "predict", *words, without=without)
        assert status == 0, problems
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            rows.append(list(csv.DictReader(file)))
    assert len(rows[0]) == len(rows[1]) == 6000
    for lean, arrow in zip(*rows, strict=True):
        assert lean["kernel"] == arrow["kernel"]
        assert float(lean["time_ms"]) == float(arrow["time_ms"])


TABLES = "pandas pyarrow"
STUDY = f"{TABLES} matplotlib cloudpickle joblib pooch scipy scikit-learn threadpoolctl"


@pytest.mark.parametrize(
    ("words", "libraries"),
    [
        (("train", "simulated-gcn3.parquet", "--base", "mid", "-o", "m.mlscale"), f"{STUDY} torch"),
        (("study", "errors", "simulated-gcn3.parquet"), STUDY),
        (("predict", "simulated-gcn3.mlscale", "simulated-gcn3.parquet"), TABLES),
    ],
)
def test_one_line_names_all_that_lacks(
    tmp_path: Path, words: tuple[str, ...], libraries: str
) -> None:
    status, printed, problem = mlscale(tmp_path, *words)
    assert (status, printed) == (2, "")
    assert problem.startswith("mlscale: error: ")
    assert problem.endswith(f"install it with: pip install {libraries}\n")
    assert problem.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_demo_says_what_it_leaves_out(tmp_path: Path) -> None:
    status, printed, problems = mlscale(tmp_path, "demo", "-o", "demo")
    assert status == 0, problems
    told = "matplotlib, pyarrow, scipy, sklearn, threadpoolctl, torch (pip install joblib matplot"
    assert f"Not installed: joblib, {told}" in printed
    assert "leaves out parts 2 and 3" in printed
    assert "Set the engine clock to " in printed


def test_only_libraries_that_lack_are_named() -> None:
    def needs(library: str, extra: str) -> str:
        with pytest.raises(MissingLibraryError) as raised, extra_named("this", extra):
            raise ModuleNotFoundError(name=f"{library}.part")
        return str(raised.value)

    assert needs("pandas", "study").endswith(" pip install pandas")  # all else is installed
    assert needs("torch", "study").endswith(" pip install torch")
    assert needs("pynvml", "measure").endswith(" pip install nvidia-ml-py")
    with pytest.raises(ModuleNotFoundError), extra_named("this"):
        raise ModuleNotFoundError(name="a_library_of_mine")
