"""Predicting from a file stays light: what trains and what draws is not imported."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic import bottleneck_kernels
from synthetic import kernels as made

import mlscale
from mlscale import Model, save, train
from mlscale.data.datasets import path

HEAVY = ("pandas", "sklearn", "torch", "pyarrow", "matplotlib", "scipy", "joblib", "tqdm",
         "pooch", "requests")  # fmt: skip
MID = made.GRID.mid


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV_"))},
    )


def imported(stderr: str) -> set[str]:
    """The top-level packages in what `-X importtime` prints."""
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", stderr, re.MULTILINE)
    return {name.partition(".")[0] for name in names}


@pytest.fixture(scope="module")
def wu_model() -> Model:
    return train(made.measurements(), MID, "wu", clusters=4)


@pytest.fixture
def files(wu_model: Model, tmp_path: Path) -> tuple[Path, Path]:
    """A model of `wu` and a profile of new kernels in CSV."""
    model, profile = tmp_path / "made.mlscale", tmp_path / "profile.csv"
    save(wu_model, model)
    header = ["kernel", "cu_count", "engine_mhz", "memory_mhz", "time_ms", "power_w"]
    new = made.measurements(per_group=1, seed=1).profiles(MID)
    lines = [",".join([*header, *new.counter_names])]
    for k, kernel in enumerate(new.kernels):
        cells = [kernel, 8, 800, 700, new.time_ms[k], 100, *new.counters[k]]
        lines.append(",".join(map(str, cells)))
    profile.write_text("\n".join(lines))
    return model, profile


class TestPredictAndAdvise:
    @pytest.mark.parametrize("command", ["predict", "advise"])
    @pytest.mark.parametrize("form", ["table", "csv", "json"])
    def test_imports_nothing_heavy(self, files: tuple[Path, Path], command: str, form: str) -> None:
        done = run(
            *("-X", "importtime", "-m", "mlscale", command), *map(str, files), "--format", form
        )
        found = imported(done.stderr)
        assert {"mlscale", "numpy"} <= found  # so the list was read
        assert found.isdisjoint(HEAVY)
        assert "compute0" in done.stdout
        for unused in ("readers.reading", "predictors.bottleneck.estimator", "papers.wang_chu"):
            assert f"mlscale.{unused}\n" not in done.stderr

    def test_gives_what_it_gives_here(self, files: tuple[Path, Path], wu_model: Model) -> None:
        # The same numbers as in a process in which everything is imported, to the last bit.
        done = run("-m", "mlscale", "predict", *map(str, files), "--format", "json")
        rows = json.loads(done.stdout)["predictions"]
        new = made.measurements(per_group=1, seed=1).profiles(MID)
        factors = wu_model.predict(new)["time"].values
        assert [row["time_factor"] for row in rows] == factors.ravel().tolist()

    @pytest.mark.parametrize(
        "words",
        [
            ["h100-by-hand.csv"],
            ["training-step-ncu.csv", "training-step-trace.json.gz", "--power", "300"],
        ],
        ids=["two kernels", "training step"],
    )
    def test_advise_loads_a_part_of_the_package(self, words: list[str]) -> None:
        """Caps, commands, the report, studies and training are left to those who ask for them."""
        given = [str(path(word)) if "." in word else word for word in words]
        base = ["--base", "engine=1410,memory=1593"] if len(words) > 1 else []
        done = run("-c", ADVISE_AND_COUNT, "advise", *given, *base)
        modules, lines = map(int, done.stdout.rstrip().rpartition("\n")[2].split())
        assert modules <= MOST_MODULES
        assert lines <= MOST_LINES


# Of 139 modules with 34,000 lines.
MOST_MODULES, MOST_LINES = 71, 19_000
ADVISE_AND_COUNT = """
import sys
from pathlib import Path
from mlscale.cli.main import main
assert main(sys.argv[1:]) == 0
own = [m for name, m in sys.modules.items() if name.partition(".")[0] == "mlscale"]
lines = [Path(m.__file__).read_text(encoding="utf-8").count(chr(10)) for m in own]
print(len(own), sum(lines))
"""
LIKE_ANY_USER = """
import sys
import mlscale
model = mlscale.load(sys.argv[1])
profiles = mlscale.read_profiles(sys.argv[2], model.base, model.device)
print(sorted(model.predict(profiles, coverage=0.9)), *sorted(sys.modules))
"""


def test_trained_with_torch_or_scikit_learn_predicts_without(tmp_path: Path) -> None:
    table, base = bottleneck_kernels.measurements(4), bottleneck_kernels.CLOCKS.mid
    model, profile = tmp_path / "m.mlscale", tmp_path / "profile.csv"
    save(train(table, base, "bottleneck"), model)
    table.select([0]).write(profile)
    quantities, _, modules = run("-c", LIKE_ANY_USER, str(model), str(profile)).stdout.partition(
        "]"
    )
    assert quantities == "['power', 'time'"
    assert {name.partition(".")[0] for name in modules.split()}.isdisjoint(
        (*HEAVY, "threadpoolctl")
    )


class TestImport:
    def test_the_package_alone_imports_no_numpy(self) -> None:
        done = run("-X", "importtime", "-c", "import mlscale")
        found = imported(done.stderr)
        assert "mlscale" in found
        assert found.isdisjoint(("numpy", *HEAVY))

    def test_the_public_names_are_listed_once_and_resolve(self) -> None:
        assert len(set(mlscale.__all__)) == len(mlscale.__all__)
        assert set(mlscale.__all__) <= set(dir(mlscale))
        from_star: dict[str, object] = {}
        exec("from mlscale import *", from_star)
        assert all(from_star[name] is not None for name in mlscale.__all__)

    def test_using_every_public_name_imports_nothing_heavy(self) -> None:
        done = run("-X", "importtime", "-c", "from mlscale import *")
        assert imported(done.stderr).isdisjoint(HEAVY)

    def test_a_large_export_is_read_without_pandas(self, tmp_path: Path) -> None:
        """Arrow's own conversions to and from NumPy import it."""
        header = "Index,KernelName,grd,wgr,SQ_WAVES,BeginNs,EndNs\n"
        rows = "".join(f'{i},"f(int)",640,64,"1,000",{i}000,{i}900\n' for i in range(1, 10_000))
        (tmp_path / "run.csv").write_text(header + rows)
        script = (
            "import sys, mlscale; mlscale.import_profile(sys.argv[1], device='made-gpu', "
            "base={'cu_count': 4, 'engine_mhz': 1000, 'memory_mhz': 500})"
        )
        done = run("-X", "importtime", "-c", script, str(tmp_path / "run.csv"))
        assert "pyarrow" in imported(done.stderr)
        assert "pandas" not in imported(done.stderr)

    def test_another_name_is_refused_as_python_does(self) -> None:
        with pytest.raises(AttributeError, match="module 'mlscale' has no attribute 'fit'"):
            mlscale.fit  # noqa: B018

    def test_a_name_is_its_home_modules(self) -> None:
        home = importlib.import_module("mlscale.data.grid")
        assert mlscale.ConfigGrid is home.ConfigGrid
