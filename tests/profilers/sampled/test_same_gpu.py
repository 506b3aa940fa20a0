"""Whether a log can be of the GPU that is named; the clocks and makers are the device table's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic.monitor_logs import dcgmi_dmon, query
from synthetic.monitor_readings import MEMORY_MHZ, block
from text_files import written

from mlscale.data.device_table import load_device, register_device
from mlscale.data.table import Table
from mlscale.errors import InputError
from mlscale.profilers.sampled import join_power


def of(*devices: str) -> Table:
    """A kernel on each of these GPUs, at the clock of the logs and no memory clock of theirs."""
    axes = {"cu_count": 108.0, "engine_mhz": 1410.0, "memory_mhz": MEMORY_MHZ, "time_ms": 2.0}
    numbers = {name: np.full(len(devices), value) for name, value in axes.items()}
    return Table("t.csv", {"device": list(devices), "kernel": list(devices)}, numbers)


@pytest.mark.usefixtures("forget_own_devices")
@pytest.mark.parametrize(("vendor", "is_refused"), [("AMD", True), ("NVIDIA", False), ("X", False)])
def test_a_device_file_may_say_the_maker(tmp_path: Path, vendor: str, is_refused: bool) -> None:
    """dcgmi dmon watches NVIDIA's GPUs; who 'X' is, nobody knows."""
    known = load_device("a100-sxm4-40gb")
    register_device(replace(known, key="mine", name="Mine", aliases=(), vendor=vendor))
    log = written(tmp_path, dcgmi_dmon(block(3, 5, 2)))
    if is_refused:
        with pytest.raises(InputError, match="watches GPUs of NVIDIA alone, and 'mine' is none"):
            join_power(of("mine"), log)
    else:
        assert join_power(of("mine"), log).numbers["power_w"].tolist() == [200]


def test_a_memory_clock_that_the_gpu_cannot_have_is_refused(tmp_path: Path) -> None:
    """The log's 1215 MHz are an A100's; a V100 has at most 877."""
    log = written(tmp_path, dcgmi_dmon(block(3, 5, 2)))
    with pytest.raises(InputError, match=r"1215 MHz cannot be, 'v100-sxm2-16gb' has at most 877"):
        join_power(of("v100-sxm2-16gb"), log)


def test_a_table_of_several_gpus_takes_a_log_of_one_of_them(tmp_path: Path) -> None:
    header, *rows = query(block(1, 3, 1)).splitlines()
    named = [f"name, {header}", *(f"NVIDIA A100-SXM4-40GB, {row}" for row in rows)]
    log = written(tmp_path, "\n".join(named) + "\n")
    table = join_power(of("a100-sxm4-40gb", "a100-pcie-40gb"), log)
    assert table.numbers["power_w"].tolist() == [200, 200]
    with pytest.raises(InputError, match="is of 'NVIDIA A100-SXM4-40GB', the profile of 'v100"):
        join_power(of("v100-sxm2-16gb"), log)
