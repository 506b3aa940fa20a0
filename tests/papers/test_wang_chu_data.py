"""Wang and Chu's model on public measurements: against docs/papers/equations.md, section 1.6."""

import csv
from pathlib import Path

import numpy as np
import pytest
from public_tables import BASES, GTX980_49, measured
from synthetic.warps import dram

from mlscale import create
from mlscale.arrays import Floats
from mlscale.data.devices import load_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import absolute_percentage_error, absolute_values, without_base
from mlscale.papers.wang_chu import max_overlap_factor, predict_time_factor, predict_time_ms
from mlscale.papers.wang_chu_inputs import GpuParameters, derive_inputs, load_gpu, specification_gpu

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")  # on missing inputs

# The kernels of the paper's Table VI that the authors' table has.
TABLE_VI = (
    *("BlackScholes", "conjugateGradient", "convolutionSeparable", "fastWalshTransform"),
    *("matrixMul", "matrixMul(Global)", "scan", "sortingNetworks", "scalarProd", "transpose"),
    "vectorAdd",
)


def predicted_ms(
    data: Measurements, base: HardwareConfig, kind: str, gpu: GpuParameters | None = None
) -> Floats:
    """Times (K, 1, E, M) from the counters at the base: 'absolute', 'wang-chu', 'max-overlap'."""
    gpu, profiles = gpu or load_gpu(data.device), data.profiles(base)
    inputs = derive_inputs(profiles, gpu)
    _, engine, memory = np.ix_(data.grid.cu_count, data.grid.engine_mhz, data.grid.memory_mhz)
    if kind == "absolute":
        return predict_time_ms(inputs, gpu, engine, memory)
    clocks = (base.engine_mhz, base.memory_mhz)
    if kind == "wang-chu":
        factors = predict_time_factor(inputs, gpu, clocks, engine, memory)
    else:
        factors = max_overlap_factor(inputs, gpu, clocks, profiles.time_ms, engine, memory)
    return absolute_values(factors, profiles.time_ms)


def errors_of(
    data: Measurements, base: HardwareConfig, kind: str, gpu: GpuParameters | None = None
) -> Floats:
    """Absolute errors (K, targets) [%]; the base is a target of absolute times alone."""
    errors = absolute_percentage_error(predicted_ms(data, base, kind, gpu), data.time_ms)
    if kind == "absolute":
        return errors.reshape(len(data.kernels), -1)
    return without_base(errors, data.grid.index(base))


def paper_kernels(folder: Path) -> Measurements:
    """The 11 kernels of Table VI on the authors' GTX 980."""
    data = measured(folder, GTX980_49)
    return data.select([k for k, name in enumerate(data.kernels) if name in TABLE_VI])


@pytest.mark.parametrize(
    ("engine", "memory", "expected"),
    # docs/papers/equations.md, 1.6: any base works.
    [(400, 400, 4.44), (1000, 1000, 3.76), (1000, 400, 3.69), (400, 1000, 3.93)],
)
def test_absolute_errors_from_other_bases(
    data_folder: Path, engine: float, memory: float, expected: float
) -> None:
    found = errors_of(paper_kernels(data_folder), HardwareConfig(16, engine, memory), "absolute")
    assert found.mean() == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("kind", ["wang-chu", "max-overlap"])
def test_predictors_are_the_papers_functions(data_folder: Path, kind: str) -> None:
    """Errors of all tables are compared by tests/test_reproduction.py."""
    data, base = measured(data_folder, "p100"), BASES["p100"]
    profiles = data.profiles(base)
    factors = create(kind).fit([], []).predict(profiles, data.grid).values
    times = absolute_values(factors, profiles.time_ms)
    np.testing.assert_allclose(times, predicted_ms(data, base, kind))


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    # equations.md, 1.6: bases in a corner; and the specification alone, whose ideal delay
    # loses 0.3 to 0.5 points. For the 1080 Ti it has 2.06; the default here also leaves out that
    # row's corrections to issue, L2 and shared memory.
    [
        ("gtx980-low", (1000, 1000), 3.69),
        ("gtx980-high", (1500, 3900), 5.01),
        ("gtx1080ti", (2000, 5500), 2.57),
        ("gtx980-low", None, 3.44),
        ("gtx980-high", None, 3.80),
        ("gtx1080ti", None, 2.07),
    ],
)
def test_relative_errors_from_a_corner_and_of_the_specification(
    data_folder: Path, name: str, base: tuple[float, float] | None, expected: float
) -> None:
    data = measured(data_folder, name)
    if base:
        corner = HardwareConfig(data.grid.cu_count[0], *base)
        errors = errors_of(data, corner, "max-overlap")
    else:
        gpu = specification_gpu(load_device(data.device))
        errors = errors_of(data, BASES[name], "max-overlap", gpu)
    assert errors.mean() == pytest.approx(expected, abs=0.006)


def test_inputs_and_memory_are_those_of_the_authors(data_folder: Path) -> None:
    """Data: the authors' own derived parameters, at each of the 49 settings' own counters."""
    path = data_folder / "wang-chu-gtx980" / "gtx980-dvfs-real-features.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    data = measured(data_folder, GTX980_49)
    gpu = load_gpu("gtx980")
    assert len(rows) == data.grid.size * len(data.kernels)
    for config in data.grid:
        inputs = derive_inputs(data.profiles(config), gpu)
        engine, memory = config.engine_mhz, config.memory_mhz
        latency, delay = dram(gpu, engine, memory)
        here = [r for r in rows if (float(r["coreF"]), float(r["memF"])) == (engine, memory)]
        for row in here:
            k = data.kernels.index(row["appName"])
            assert float(row["L_DM"]) == pytest.approx(latency, rel=1e-9)
            assert float(row["D_DM"]) == pytest.approx(delay, rel=1e-9)
            transactions = float(row["n_gld"]) + float(row["n_gst"])
            assert inputs.global_transactions[k] == pytest.approx(transactions, rel=1e-9)
            shared = float(row["n_shm_ld"]) + float(row["n_shm_st"])
            assert inputs.shared_transactions[k] == pytest.approx(shared, rel=1e-9)
            assert inputs.resident_warps[k] == pytest.approx(64 * float(row["act_util"]), rel=1e-9)
            hit_rate = max(0.0, float(row["l2_hit"]))
            assert inputs.l2_hit_rate[k] == pytest.approx(hit_rate, abs=1e-9)


def test_what_lies_outside_the_scope_is_found(data_folder: Path) -> None:
    """Data: the FP64 and texture kernels of the GTX 980 set, and no others."""
    data, base = measured(data_folder, "gtx980-low"), BASES["gtx980-low"]
    flags = dict(
        zip(data.kernels, derive_inputs(data.profiles(base), load_gpu("gtx980")).flags, strict=True)
    )

    def flagged(word: str) -> set[str]:
        return {
            kernel for kernel, found in flags.items() if any(word in flag.text for flag in found)
        }

    assert flagged("FP64") == {"backpropBackward", "binomialOptions", "hotspot", "srad"}
    assert flagged("texture") == {"convolutionTexture", "stereoDisparity"}
    assert flagged("clipped") == {"histogram", "scalarProd"}
