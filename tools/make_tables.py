"""Write the tables of docs/tables that `mlscale study` makes: what it finds, in hundredths.

    MLSCALE_DATA=FOLDER python tools/make_tables.py [NAME ...]

Names: those of STUDIES; all without one. FOLDER has the public tables. Columns are those of
docs/reference/files.md, without seconds. The other tables there come from reproduction/runs.py,
tools/draw_pictures.py and tools/real_files.py.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "tables"
IMPORTED = {
    "gtx980-low": ("dvfs/gtx980-low-dvfs-real-small-workload-Performance-Power.csv", "gtx980"),
    "gtx980-high": ("dvfs/gtx980-high-dvfs-real-small-workload-Performance-Power.csv", "gtx980"),
    "gtx1080ti": ("dvfs/gtx1080ti-dvfs-real-Performance-Power.csv", "gtx1080ti"),
    "p100": ("dvfs/p100-dvfs-real-Performance-Power.csv", "p100"),
    "gtx980-49": ("wang-chu-gtx980/gtx980-DVFS-Performance.csv", "gtx980"),
}
FOUR = "gtx980-low.parquet gtx980-high.parquet gtx1080ti.parquet p100.parquet"
SUITES = "datasets/h100-suite.csv datasets/h200-suite.csv"
SIX = f"{FOUR} gtx980-49.parquet datasets/simulated-gcn3.parquet --base mid"
FROM_MID = f"{FOUR} --base mid"
WITHIN = f"advice {FOUR} --base highest --predictor bottleneck --minimize energy --seeds 1"
STUDIES = {
    "new-kernels": f"errors {SIX} --predictor nearest --predictor extra-trees --predictor wu "
    "--predictor wang-chu --predictor max-overlap --predictor bottleneck --features table2 "
    "--features utilisation --features rates --features raw --features utilisation+power --seeds 3",
    "new-gpus": f"errors {FROM_MID} --unseen-gpu --seeds 1",
    "fewer-sms": f"errors {SUITES} --base cu=132 --predictor bottleneck --predictor wu --seeds 3",
    "fewer-sms-of-a-new-gpu": f"errors {SUITES} --base highest --unseen-gpu",
    "advice": f"advice {FROM_MID} --predictor bottleneck --predictor nearest "
    "--predictor extra-trees --seeds 3",
    "advice-of-runs": f"advice {FROM_MID} --runs 200 --predictor bottleneck --predictor nearest",
    "advice-within-2": f"{WITHIN} --max-slowdown 2",
    "advice-within-5": f"{WITHIN} --max-slowdown 5",
    "advice-within-10": f"{WITHIN} --max-slowdown 10",
}
LEFT_OUT = {"train_seconds", "predict_microseconds", "standard_error_over", "mape_by_seed"}


def mlscale(*words: str, folder: Path) -> None:
    """Run the command; its warnings come through. CalledProcessError where it fails."""
    command = [sys.executable, "-m", "mlscale", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def hundredths(cell: str) -> str:
    """A number with decimals, rounded; any other cell as it is."""
    try:
        return f"{float(cell):.2f}".rstrip("0").rstrip(".") if "." in cell else cell
    except ValueError:
        return cell


def table_of(study: Path) -> list[dict[str, str]]:
    """The rows of a study's folder."""
    (file,) = (study / name for name in ("errors.csv", "advice.csv") if (study / name).exists())
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    kept = [name for name in rows[0] if name not in LEFT_OUT and any(row[name] for row in rows)]
    return [{name: hundredths(row[name]) for name in kept} for row in rows]


def write(name: str, rows: list[dict[str, str]]) -> None:
    """Write a table of docs/tables."""
    with (TABLES / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(*names: str) -> None:
    """Run the studies that are named, or all, and write their tables."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "datasets").symlink_to(ROOT / "datasets")
        for table, (file, device) in IMPORTED.items():
            source = str(Path(os.environ["MLSCALE_DATA"], file).resolve())
            options = ("--device", device, "-o", f"{table}.parquet")
            mlscale("import", "dvfs", source, *options, folder=folder)
        for name in names or STUDIES:
            mlscale("study", *STUDIES[name].split(), "-o", name, folder=folder)
            write(name, table_of(folder / name))
            print(f"docs/tables/{name}.csv", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
