"""Operations of PyTorch on fewer SMs of a GPU: predicted from one profile on all, and measured.

    python tools/operations.py MODEL GPU     (GPU: h100 or h200)

No operation was trained on. Printed is time over that on all SMs, for each operation and number of
SMs, and the mean error. gemm_bf16_1024 is left out: Python takes longer to launch it than it runs.
"""

import csv
import gzip
import io
import sys
import tempfile
import warnings
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

import mlscale
from mlscale.data.datasets import path
from mlscale.model.shipped import model_for

TESTS = Path(__file__).parent.parent / "tests"
# In the order in which they were profiled, a spinning kernel after each.
ORDER = (
    "gemm_bf16_1024", "gemm_bf16_4096", "gemm_bf16_8192", "gemm_bf16_8192_zeros",
    "gemm_bf16_8192_ones", "gemm_fp32_4096", "gemm_fp32_4096_zeros", "gemm_tf32_4096",
    "gemm_fp64_2048", "attention_2k", "attention_8k", "attention_2k_backward", "layernorm",
    "softmax", "gelu", "sum", "copy_1g", "lookup", "convolution", "sort",
)  # fmt: skip
MATRIX = ("gemm", "attention", "convolution")


def exports(gpu: str, folder: Path) -> dict[str, Path]:
    """Write ncu's rows of each operation into a file of its own."""
    export = TESTS / gpu / "ncu-operations.csv.gz"
    with gzip.open(export, "rt", encoding="utf-8") as file:
        head, units, *launches = csv.reader(line for line in file if line.startswith('"'))
    place, names, lot, files = head.index("Kernel Name"), iter(ORDER), [], {}
    for launch in launches:
        if "spin_kernel" not in launch[place]:
            lot.append(launch)
        elif (name := next(names)) and lot:
            text = io.StringIO()
            csv.writer(text, quoting=csv.QUOTE_ALL).writerows([head, units, *lot])
            files[name] = folder / f"{name}.csv"
            files[name].write_text(text.getvalue(), encoding="utf-8")
            lot = []
    return files


def main(model_file: str, gpu: str) -> None:
    """Print the table and the means, of one GPU."""
    warnings.simplefilter("ignore", mlscale.DataWarning)
    model, measured, errors = mlscale.load(model_file), defaultdict(dict), defaultdict(list)
    with path(f"{gpu}-operations.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            measured[row["operation"]][int(row["sm_count"])] = float(row["time_ms"])
            memory_mhz = float(row["memory_mhz"])
    print(f"{'operation':<22} SMs  measured x  predicted x  error %")
    with tempfile.TemporaryDirectory() as folder:
        for name, file in exports(gpu, Path(folder)).items():
            times = measured.get(name, {})
            fewer = sorted(n for n in times if n < max(times))
            if not fewer or name == "gemm_bf16_1024":
                continue
            base = {"cu_count": max(times), "engine_mhz": 1980, "memory_mhz": memory_mhz}
            try:
                profiles = mlscale.import_profile(file, base=base)
            except mlscale.InputError:  # its clock fell at the power limit
                profiles = mlscale.import_profile(file, base={"cu_count": max(times)})
            at = [replace(profiles.base, cu_count=n) for n in (max(times), *fewer)]
            rows = model_for(model, profiles, at).predict(profiles).rows([*at])
            by_kernel = np.array([r["time_ms"] for r in rows]).reshape(len(profiles.kernels), -1)
            total = profiles.weights @ by_kernel
            for n, predicted in zip(fewer, total[1:] / total[0], strict=True):
                ratio = times[n] / times[max(times)]
                error = 100 * (predicted / ratio - 1)
                kind = "matrix products" if name.startswith(MATRIX) else "others"
                errors[kind].append(abs(error))
                print(f"{name:<22} {n:>3}  {ratio:>10.3f}  {predicted:>11.3f}  {error:>+7.1f}")
    for kind, of_kind in [*errors.items(), ("all", [*chain(*errors.values())])]:
        print(f"mean error of {kind}: {np.mean(of_kind):.1f} % (median {np.median(of_kind):.1f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
