"""tegrastats' lines in the forms of several modules; expected numbers are by hand.

The forms are those of lines that users of these modules show; the readings are made.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, succeed
from synthetic.monitor_logs import load, row
from text_files import written

from mlscale import HardwareConfig
from mlscale.data.device_table import load_device, register_device
from mlscale.data.profiles import profiles_at
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers.sampled import RunFacts, SampledTable, import_logs, join_power, log_format
from mlscale.profilers.sampled.formats import read_logs
from mlscale.profilers.sampled.log import SampledLog
from mlscale.shipped import shipped_model

RAM = "RAM 4321/62801MB (lfb 1759x4MB) SWAP 19/31400MB (cached 0MB) CPU [3%@729,0%@729,off]"
RAIL = pytest.mark.filterwarnings("ignore:.*power is that of the rail")


def orin(second: int, busy: int, mhz: int, watts: float, emc: int = 40, minute: int = 7) -> str:
    """A line of a Jetson AGX Orin, with a date; without load both of its clusters are off."""
    clocks = f"{mhz},{mhz}" if busy else "0,0"
    minute, second = minute + second // 60, second % 60
    return (
        f"04-11-2025 10:{minute:02}:{second:02} {RAM} EMC_FREQ {emc}%@{3199 if busy else 2133} "
        f"GR3D_FREQ {busy}%@[{clocks}] VIC_FREQ 729 APE 174 CPU@44.5C GPU@-256C tj@44.3C "
        f"VDD_GPU_SOC {1000 * watts:.0f}mW/9999mW VDD_CPU_CV 390mW/390mW "
        "VIN_SYS_5V0 4025mW/4025mW NC 0mW/0mW VDDQ_VDD2_1V8AO 301mW/301mW NC 0mW/0mW"
    )


def run(busy: int, mhz: int = 1300, watts: float = 12.0) -> str:
    """A log of that many busy samples, a second each, between two idle ones."""
    lines = [orin(0, 0, 0, 2.3, 0)]
    lines += [orin(1 + n, 99, mhz, watts) for n in range(busy)]
    return "\n".join([*lines, orin(1 + busy, 0, 0, 2.3, 0)]) + "\n"


def imported(folder: Path, text: str, **facts: object) -> SampledTable:
    with pytest.warns(DataWarning, match="power is that of the rail"):
        return load(written(folder, text), "tegrastats", **facts)


def one_log(folder: Path, text: str) -> SampledLog:
    form, (log,) = read_logs(written(folder, text))
    assert form.tool == "tegrastats"
    return log


def test_a_run_of_an_orin(tmp_path: Path) -> None:
    """Of 99, 97 and 98 % of the GPU, 40, 42 and 44 % of the memory, 12, 12.5 and 13 W."""
    lines = [orin(0, 0, 0, 2.3, 0), orin(1, 99, 1300, 12), orin(2, 97, 1300, 12.5, 42)]
    text = "\n".join([*lines, orin(3, 98, 1300, 13, 44), orin(4, 0, 0, 2.3, 0)]) + "\n"
    table = imported(tmp_path, text, device="jetson-agx-orin-64gb", base={})
    assert row(table) == pytest.approx(
        {
            "cu_count": 16, "engine_mhz": 1300, "memory_mhz": 3199, "time_ms": 3000,
            "power_w": 12.5, "gpu_utilisation": 0.98, "memory_copy_utilisation": 0.42,
        }
    )  # fmt: skip
    metadata = table.table.metadata
    assert metadata["power_kind"] == "rail"
    assert metadata["power_source"] == "mean of the rail VDD_GPU_SOC (GPU and SoC)"
    assert metadata["counter_tool"] == "tegrastats"


@pytest.mark.parametrize(
    ("line", "values", "rail"),
    [
        pytest.param(
            f"{RAM} EMC_FREQ 4%@2133 GR3D_FREQ 60%@[305] NVDEC off APE 200 gpu@48.2C tj@48.8C "
            "VDD_IN 5704mW/5704mW VDD_CPU_GPU_CV 831mW/900mW VDD_SOC 1624mW/1624mW",
            {"gpu_utilisation": 0.6, "engine_mhz": 305, "memory_mhz": 2133,
             "memory_copy_utilisation": 0.04, "power_w": 0.831},
            "VDD_CPU_GPU_CV (CPU, GPU and CV)",
            id="orin-nx",
        ),
        pytest.param(
            f"{RAM} EMC_FREQ 0%@1331 GR3D_FREQ 12%@114 VIC_FREQ 115 APE 150 AUX@36C GPU@35C "
            "PMIC@50C GPU 467mW/500mW CPU 310mW/310mW SOC 1245mW/1245mW CV 0mW/0mW "
            "VDDRQ 311mW/311mW SYS5V 2768mW/2768mW",
            {"gpu_utilisation": 0.12, "engine_mhz": 114, "memory_mhz": 1331,
             "memory_copy_utilisation": 0, "power_w": 0.467},
            "GPU (the GPU)",
            id="agx-xavier",
        ),
        pytest.param(
            f"{RAM} EMC_FREQ 9%@1600 GR3D_FREQ 45%@921 NVDEC 716 APE 25 PLL@33C GPU@34C "
            "POM_5V_IN 3187/3100 POM_5V_GPU 450/400 POM_5V_CPU 612/612",
            {"gpu_utilisation": 0.45, "engine_mhz": 921, "memory_mhz": 1600,
             "memory_copy_utilisation": 0.09, "power_w": 0.45},
            "POM_5V_GPU (the GPU)",
            id="nano",
        ),
        pytest.param(
            f"{RAM} EMC_FREQ 3% GR3D_FREQ 20% PLL@42.5C GPU@41C VDD_SYS_GPU 153/158 "
            "VDD_SYS_SOC 536/547 VDD_IN 3140/3208",
            {"gpu_utilisation": 0.2, "memory_copy_utilisation": 0.03, "power_w": 0.153},
            "VDD_SYS_GPU (the GPU)",
            id="tx2",
        ),
        pytest.param(
            f"{RAM} GR3D_FREQ 32% cpu@51.9C/51.9C gpu@47.1C/47.3C VDD_GPU_SOC "
            "4385mW/3787mW/4400mW VDD_CPU_CV 1196mW/897mW/1196mW VIN_SYS_5V0 5552mW/5274mW/5552mW",
            {"gpu_utilisation": 0.32, "power_w": 4.385},
            "VDD_GPU_SOC (GPU and SoC)",
            id="orin-with-the-highest-too",
        ),
        pytest.param(
            f"{RAM} GR3D_FREQ @[314,0,316] cpu@40C VDD_GPU 30000mW/9000mW VDD_CPU_SOC_MSS "
            "3924mW/3924mW VIN_SYS_5V0 5000mW/5000mW VIN 41000mW/20000mW",
            {"engine_mhz": 315, "power_w": 30},
            "VDD_GPU (the GPU)",
            id="thor-without-load",
        ),
        pytest.param(  # made: no module is known to print both
            f"{RAM} GR3D_FREQ 50% VDD_CPU_GPU_CV 900mW/900mW VDD_GPU_SOC 700mW/700mW GPU 400mW/1mW",
            {"gpu_utilisation": 0.5, "power_w": 0.4},
            "GPU (the GPU)",
            id="the-rail-that-feeds-least-beside-it",
        ),
    ],
)  # fmt: skip
def test_the_forms_of_other_modules(
    tmp_path: Path, line: str, values: dict[str, float], rail: str
) -> None:
    log = one_log(tmp_path, f"{line}\n{line}\n")
    assert {name: column.tolist() for name, column in log.columns.items()} == {
        name: pytest.approx([value, value]) for name, value in values.items()
    }
    assert log.power_of == f"the rail {rail}"
    assert log.seconds is None


@pytest.mark.parametrize(
    ("memory", "values"),
    [
        ("EMC_FREQ @4266", {"memory_mhz": 4266}),
        ("EMC_FREQ @0", {}),
        ("EMC_FREQ 0%@0", {}),
        ("EMC_FREQ 7%", {"memory_copy_utilisation": 0.07}),
        ("EMC_FREQ 0%", {}),
        ("EMC_FREQ 0%@1600", {"memory_copy_utilisation": 0, "memory_mhz": 1600}),
    ],
)
def test_a_memory_without_share_or_clock(
    tmp_path: Path, memory: str, values: dict[str, float]
) -> None:
    """Of a clock alone, as on a Thor, no share is known; no memory runs at 0 MHz."""
    log = one_log(tmp_path, f"{RAM} {memory} GR3D_FREQ 99%@[1300,1300]\n")
    for column in ("memory_mhz", "memory_copy_utilisation"):
        assert log.has(column) == (column in values)
    for column, value in values.items():
        assert log.columns[column] == pytest.approx([value])


def test_a_memory_clock_of_0_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, run(3).replace("@3199", "@0").replace("@2133", "@0"))
    with pytest.raises(
        InputError, match=r"give --base memory=… \(memory: usually its highest, 3199\)$"
    ):
        import_logs([path], None, RunFacts(device="jetson-agx-orin-64gb"))


def test_without_a_load_power_tells_when_it_works(tmp_path: Path) -> None:
    """As of a Thor whose sensor is 0.4 W too low at idle: half way from -0.4 to 30 W."""
    line = f"{RAM} GR3D_FREQ @[1575,1575,1575] cpu@40C VDD_GPU {{}}mW/0mW VIN 9000mW/9000mW\n"
    text = "".join(line.format(milliwatts) for milliwatts in (-392, 14850, 30000, 14750, -392))
    base = {"cu_count": 20, "memory_mhz": 4266}
    table = imported(tmp_path, text, interval_s=0.5, base=base)
    (span,) = table.spans
    assert (span.first, span.last) == (1, 2)
    assert row(table)["power_w"] == pytest.approx(22.425)


def test_dates_that_stand_twice_are_no_times(tmp_path: Path) -> None:
    """Two lines a second at --interval 500; times are whole seconds, so the interval is asked."""
    lines = run(4).splitlines()
    path = written(tmp_path, "\n".join(line for line in lines for _ in range(2)))
    facts = RunFacts(device="jetson-agx-orin-64gb")
    with pytest.raises(InputError, match=r"give --interval SECONDS \(between two samples\)$"):
        import_logs([path], None, facts)
    table = imported(tmp_path, path.read_text(), interval_s=0.5)
    assert row(table)["time_ms"] == pytest.approx(8 * 500)


def test_a_second_that_is_skipped_counts(tmp_path: Path) -> None:
    """A sample at each second from 1 to 4 and from 6 to 8: 8 s with the one before the first."""
    lines = run(8).splitlines()
    assert row(imported(tmp_path, "\n".join([*lines[:5], *lines[6:]])))["time_ms"] == 8000


def test_lines_of_others_are_passed_over(tmp_path: Path) -> None:
    lines = run(3).splitlines()
    text = "\n".join(["$ tegrastats", lines[0], "", "loss 0.3", *lines[1:]])
    assert row(imported(tmp_path, text))["time_ms"] == 3000


@pytest.mark.parametrize("left", [len(orin(4, 99, 1300, 12)) - 5, 200, 120])
def test_the_last_line_may_be_cut_off(tmp_path: Path, left: int) -> None:
    """What ends in the last rail's own number is whole enough."""
    *lines, last = run(3).splitlines()[:-1]
    path = written(tmp_path, "\n".join([*lines, last[:left]]))
    is_told = left < 201
    with pytest.warns(DataWarning) as told:
        table = load(path, "tegrastats")
    cut = [str(warning.message) for warning in told if "cut off" in str(warning.message)]
    assert [text.endswith("row 4: the last line is cut off and left out") for text in cut] == (
        [True] if is_told else []
    )
    assert row(table)["time_ms"] == (2000 if is_told else 3000)


def test_a_share_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, run(3).replace("GR3D_FREQ 99%", "GR3D_FREQ 990%"))
    with pytest.raises(InputError, match=r"row 2, column 'GR3D_FREQ': '990' cannot be"):
        read_logs(path)


def test_it_is_known_by_its_lines(tmp_path: Path) -> None:
    for text in (run(1), f"started\n{RAM} GR3D_FREQ 0%\n"):
        form = log_format(written(tmp_path, text))
        assert form is not None
        assert form.tool == "tegrastats"
    assert log_format(written(tmp_path, "RAM of the host: 12/64\n")) is None


@RAIL
def test_two_logs_are_advised_on_by_their_times(capsys: Capture, tmp_path: Path) -> None:
    """Work that follows the clock: 40 s at 1300 MHz, 60 s at 867; energy is the board's.

    Of its clocks 1224 MHz take 6 % longer, 1122 MHz 16 %.
    """
    logs = [
        written(tmp_path, run(*of), name)
        for name, of in {"fast.txt": (40, 1300, 20.0), "slow.txt": (60, 867, 11.0)}.items()
    ]
    given = ("--device", "jetson-agx-orin-64gb", "--max-slowdown", 10, "--format", "json")
    out, _ = succeed(capsys, "advise", logs[0], "--also", logs[1], *given)
    document = json.loads(out)
    assert document["objective"] == "clock"
    assert document["whole_run"]["best"]["engine_mhz"] == 1224
    said = "power_w is that of a supply rail, and the model's is the board's"
    assert f"the lowest clock is sought, not least energy: {said}" in document["warnings"]


@RAIL
def test_power_of_a_rail_for_another_table_is_said_to_be(tmp_path: Path) -> None:
    table = load(written(tmp_path, run(3).replace("VDD_GPU_SOC", "VDD_X")), "tegrastats").table
    assert table.metadata["power_kind"] is None
    with_power = join_power(table, written(tmp_path, run(3), "w.txt"))
    assert with_power.metadata["power_kind"] == "rail"
    assert with_power.metadata["power_source"].endswith("; of the rail VDD_GPU_SOC (GPU and SoC)")
    assert with_power.numbers["power_w"] == pytest.approx([12])
    assert join_power(table, 12).metadata["power_kind"] == "board"


@pytest.mark.parametrize("device", ["a100-sxm4-40gb", "gb10", "mi300x"])
def test_a_log_for_a_gpu_that_is_no_jetsons_is_refused(tmp_path: Path, device: str) -> None:
    """As the power of an export, and as a log of its own; a name that is not known is taken."""
    log = written(tmp_path, run(3))
    axes = {"cu_count": 16.0, "engine_mhz": 1300.0, "memory_mhz": 3199.0, "time_ms": 2.0}
    table = Table("t.csv", {"device": [device]}, {name: np.array([v]) for name, v in axes.items()})
    said = f"is of tegrastats, which watches Jetson modules alone, and '{device}' is none"
    with pytest.raises(InputError, match=said):
        join_power(table, log)
    with pytest.raises(InputError, match=said):
        load(log, "tegrastats", device=device, base={})
    assert imported(tmp_path, run(3), device="xavier").table.text["device"] == ["xavier"]


@pytest.mark.usefixtures("forget_own_devices")
def test_a_jetson_of_ones_own_is_taken(tmp_path: Path) -> None:
    """A device file need not say Jetson in its name."""
    entry = replace(load_device("jetson-agx-orin-64gb"), key="my-nano", name="Nano", aliases=())
    register_device(entry)
    assert imported(tmp_path, run(3), device="my-nano").table.text["device"] == ["my-nano"]


def test_import_says_that_it_is_a_rails(capsys: Capture, tmp_path: Path) -> None:
    export = tmp_path / "trace.csv"
    export.write_text(
        '"Start (ns)","Duration (ns)","GrdX","GrdY","GrdZ","BlkX","BlkY","BlkZ","Name"\n'
        "0,2000,16,1,1,256,1,1,gemm\n"
    )
    given = ("--device", "jetson-agx-orin-64gb", "--base", "engine=1300,memory=3199", "--power")
    log = written(tmp_path, run(3))
    out, _ = succeed(capsys, "import", "auto", export, *given, log, "-o", tmp_path / "t.csv")
    assert "; rail power 12.00 W (mean of tegrastats, run.log, GPU 0, " in out


@RAIL
def test_a_model_of_boards_gives_no_power_of_a_rail(tmp_path: Path) -> None:
    """Nor is a rail's power held to what an idle module draws, 9 W by the device table."""
    table = imported(tmp_path, run(3, watts=4.0), device="jetson-agx-orin-64gb", base={}).table
    profiles = profiles_at(table, HardwareConfig(16, 1300, 3199), "jetson-agx-orin-64gb")
    model = shipped_model(profiles, has_further=True)[1]
    assert model.why_no_power(profiles) == (
        "power_w is that of a supply rail, and the model's is the board's"
    )
    assert profiles.power_w == pytest.approx(np.array([4.0]))
    of_rail = {**model.card, "metadata": {**model.card["metadata"], "power_kind": "rail"}}
    model = replace(model, card=of_rail)
    assert (model.why_no_power(profiles), model.power_kind(profiles)) == (None, "rail")
