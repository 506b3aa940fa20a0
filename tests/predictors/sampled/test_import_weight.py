"""Predicting from a saved model of `sampled` imports what prediction may import: NumPy."""

import subprocess
import sys
from pathlib import Path

from synthetic import sampled_kernels as made

from mlscale import save, train

SCRIPT = """
import sys
import mlscale
from mlscale.data.grid import HardwareConfig
model = mlscale.load(sys.argv[1])
profiles = mlscale.read_profiles(sys.argv[2], model.base, model.device)
print(model.predict(profiles, coverage=0.9)["power"].values.size)
heavy = {"pandas", "sklearn", "scipy", "torch", "pyarrow", "joblib", "threadpoolctl"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


def test_prediction_imports_nothing_heavy(tmp_path: Path) -> None:
    table = made.measurements(count=12, per_application=2)
    model, profile = tmp_path / "m.mlscale", tmp_path / "profile.csv"
    save(train(table, made.TOP, "sampled", bases=0), model)
    table.select([0]).write(profile)
    given = [sys.executable, "-c", SCRIPT, str(model), str(profile)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout == "7\n[]\n"
