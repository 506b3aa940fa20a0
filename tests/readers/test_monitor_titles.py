"""Logs of people's own tools and scripts: what is told by words and units in titles, and by times.

Numbers are by hand: each log is a header and a few rows.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from synthetic.tidy import refused
from text_files import written

from mlscale.data.column_names import read_title
from mlscale.errors import DataWarning
from mlscale.readers.given import Given
from mlscale.readers.log_table import samples_to_table
from mlscale.readers.monitor import read_log

QUIET = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")

# By hand: a header and two rows, and the seconds between them.
TIMES = {
    "epoch_ms": (("1711711009000", "1711711009250"), 0.25),
    "epoch_ns": (("1711711009000000000", "1711711010500000000"), 1.5),
    "Time (ms)": (("100", "350"), 0.25),
    "timestamp": (("2024-03-29T23:59:59.5Z", "2024-03-30T00:00:01Z"), 1.5),
    "Timestamp": (("23:59:59.000", "00:00:01.000"), 2.0),
    "Date": (("9.6.2026 12:00:00", "9.6.2026 12:00:02"), 2.0),
    # Large numbers that are not since 1970: the unit of the title counts.
    "monotonic_ns": (("123000000000000", "123000250000000"), 0.25),
    "timestamp [us]": (("999999000000", "1000000000000"), 1.0),
    "timestamp (µs)": (("5", "500005"), 0.5),
}


@pytest.mark.parametrize("title", TIMES)
@QUIET
def test_times_are_read_in_every_form(tmp_path: Path, title: str) -> None:
    (first, last), expected_s = TIMES[title]
    [log] = read_log(written(tmp_path, f"{title},power_w\n{first},90\n{last},91\n"))
    assert log.seconds is not None
    assert np.diff(log.seconds) == pytest.approx([expected_s])


# Numbers that are no seconds from a start, steps of Excel's days, milliseconds and minutes.
@pytest.mark.parametrize(("first", "last"), [("46027.40", "46027.400001"), ("0", "100")])
def test_steps_of_no_unit_are_asked_about(tmp_path: Path, first: str, last: str) -> None:
    with refused(r"column 'timestamp': a sample every [\d.e-]+, in what\? End its title with"):
        read_log(written(tmp_path, f"timestamp,power_w\n{first},90\n{last},91\n"))


@QUIET
def test_steps_that_contradict_their_unit_are_asked_about(tmp_path: Path) -> None:
    text = "elapsed_ms,power_w\n0,90\n0.5,91\n"
    with refused("no log has a sample every 0.5 ms; title it 'time' and its unit, "):
        read_log(written(tmp_path, text))
    [log] = read_log(written(tmp_path, text.replace("elapsed_ms", "time [s]")))
    assert log.seconds is not None
    assert np.diff(log.seconds) == pytest.approx([0.5])


@QUIET
def test_an_epoch_of_training_is_no_time(tmp_path: Path) -> None:
    [log] = read_log(written(tmp_path, "epoch,power_w\n0,90\n0,91\n1,92\n"))
    assert log.seconds is None


@QUIET
def test_gpus_of_amd_smi_side_by_side(tmp_path: Path, data_folder: Path) -> None:
    """Two by hand, with a comma at the end of the header, as a real file of eight has it."""
    text = "Timestamp,gpu,socket_power,gfx_0_clk,gpu,socket_power,gfx_0_clk,\n"
    logs = read_log(written(tmp_path, f"{text}5,0,200,2100,1,300,2000\n6,0,210,2100,1,310,2000\n"))
    told = [(log.gpu, log.columns["power_w"].tolist()) for log in logs]
    assert told == [("0", [200, 210]), ("1", [300, 310])]
    eight = read_log(data_folder / "cases4/27-amd-smi-8-gpus-side-by-side.csv")
    assert [log.gpu for log in eight] == [*"01234567"]
    with refused("column 'gpu' appears twice, with different columns; keep one"):
        read_log(written(tmp_path, "gpu,socket_power,gfx_0_clk,gpu,mem\n0,200,2100,1,3\n"))


# Titles that say something else than a GPU's power, clock or load, though a word of it is there.
NOT_OF_A_GPU = """
gpu_rated_power_w; gpu_nominal_power_w; gpu_power_budget_w; gpu_power_headroom_w; gpus_power_w
CPU+GPU power (W); gpu_power_sum_w; package_power_w; GPU Memory Power (W)
GPU Speichertakt [MHz]; gpu_boost_clock_mhz; gpu_base_clock; gpu_fan_util; gpu_kv_cache_usage
gpu_cpu_load; gpu_bandwidth_util; 处理器功率(W); 显存频率(MHz); 功率上限(W); GPU显存频率(MHz)
Мощность GPU (W); Лимит GPU (W)
"""


@pytest.mark.parametrize("title", re.split(r"; |\n", NOT_OF_A_GPU.strip()))
def test_titles_of_other_things_are_not_taken(title: str) -> None:
    assert read_title(title) is None


def test_a_doubtful_title_is_told_beside_known_ones(tmp_path: Path) -> None:
    text = "timestamp,power.draw [W],gpu_foo_clock_mhz\n0,90,1500\n1,91,1500\n"
    with pytest.warns(DataWarning, match=r"engine_mhz \(a guess\) is 'gpu_foo_clock_mhz'$"):
        read_log(written(tmp_path, text))


@pytest.mark.parametrize("title", ["card{}_power", "device{}_power_w", "nvidia{}.power_w"])
@QUIET
def test_a_number_behind_a_gpus_word_is_its_own(tmp_path: Path, title: str) -> None:
    titles = ",".join(title.format(n) for n in (0, 1))
    logs = read_log(written(tmp_path, f"timestamp,{titles}\n0,200,300\n1,210,310\n"))
    assert [log.columns["power_w"].tolist() for log in logs] == [[200, 210], [300, 310]]


@QUIET
@pytest.mark.parametrize(("memory_mhz", "listed_mhz"), [(1312.7, 10501), (10501, 10501)])
def test_the_memory_clock_of_gpu_z_is_that_of_the_vendors_tool(
    tmp_path: Path, memory_mhz: float, listed_mhz: float
) -> None:
    """GPU-Z shows an eighth of the rate of GDDR6X, nvidia-smi half of it; made."""
    rows = "".join(f"{n}.5.2026 10:00:00,300,2520,{memory_mhz},90\n" for n in (1, 2))
    title = "Date,Board Power Draw [W],GPU Clock [MHz],Memory Clock [MHz],GPU Load [%]"
    logs = read_log(written(tmp_path, f"{title}\n{rows}"))
    table = samples_to_table(logs, Given("rtx4090", time_ms=9.0))
    assert table.numbers["memory_mhz"].tolist() == [listed_mhz]


@QUIET
def test_gpus_in_columns_of_their_own_are_side_by_side(tmp_path: Path) -> None:
    """Made; the sum of both, and a CPU's power, are no GPU's."""
    text = (
        "Time;gpu_power_w;gpu0_power_w;gpu1_power_w;cpu_power_w;gpu0_sm_clock_mhz\n"
        "0;500;200;300;90;1400\n1;520;210;310;95;1410\n"
    )
    logs = {log.gpu: log.columns for log in read_log(written(tmp_path, text))}
    assert {gpu: of["power_w"].tolist() for gpu, of in logs.items()} == {
        "0": [200, 210],
        "1": [300, 310],
    }
    assert logs["0"]["engine_mhz"].tolist() == [1400, 1410]


@QUIET
def test_afterburner_says_the_units_in_lines_of_their_own(tmp_path: Path) -> None:
    """The form of a public log; its power is in watts or in percent of the limit."""
    at = "07-12-2024 23:49:4"
    text = (
        f"00, {at}6, Hardware monitoring log v1.6 \n01, {at}6, Radeon RX 560 Series\n"
        f"02, {at}6, CPU clock ,Core clock ,Power \n03, {at}6, 0 ,MHz ,0.000 ,5000.000 ,10 , , ,\n"
        f"03, {at}6, 2 ,W ,0.000 ,300.000 ,10 , , ,%.1f\n"
        f"80, {at}6, 3775.0 ,214.0 ,20.5 \n80, {at}7, 3775.0 ,1214.0 ,90.5 \n"
    )
    [log] = read_log(written(tmp_path, text))
    assert log.columns["power_w"].tolist() == [20.5, 90.5]
    assert log.columns["engine_mhz"].tolist() == [214, 1214]
    with refused("a log needs power, or a clock with utilisation"):
        read_log(written(tmp_path, text.replace("2 ,W", "2 ,%")))


@QUIET
@pytest.mark.parametrize("units", ["ms,mW,MHz,%", "[ms],[mW],[MHz],[%]", "ms;mW;MHz;%"])
def test_units_may_stand_in_a_line_below_the_titles(tmp_path: Path, units: str) -> None:
    """100 ms and 200 ms, 150 W; a first sample without readings is no such line."""
    lines = "Time,Board Power,GPU Clock,GPU Load\nUNITS\n100,150000,1400,99\n200,150000,1410,98\n"
    text = (lines.replace(",", ";") if ";" in units else lines).replace("UNITS", units)
    [log] = read_log(written(tmp_path, text))
    assert log.seconds is not None
    assert log.seconds.tolist() == [0.1, 0.2]
    assert log.columns["power_w"].tolist() == [150, 150]
    assert log.columns["engine_mhz"].tolist() == [1400, 1410]
    assert log.columns["gpu_utilisation"].tolist() == pytest.approx([0.99, 0.98])
    missing = lines.replace("UNITS", "0,N/A,N/A,N/A").replace("150000", "150").replace("00,", ",")
    assert len(read_log(written(tmp_path, missing))[0]) == 3


def test_a_unit_of_something_else_in_a_cell_is_refused(tmp_path: Path) -> None:
    text = "timestamp,power_w,GPU Clock\n0,150,1400\n1,150,1410 W\n"
    with refused("column 'GPU Clock' is in W; give all its cells in one unit, such as MHz"):
        read_log(written(tmp_path, text))


def test_gpustat_is_read(tmp_path: Path) -> None:
    """Made; a missing power is missing, not 0."""
    gpus = [[{"index": n, "name": "Foo", "power.draw": watts, "utilization.gpu": 50}
             for n, watts in enumerate(of)] for of in ((90, 80), (None, 85))]  # fmt: skip
    moments = [{"query_time": f"2026-03-02T10:00:0{k}.5", "gpus": of} for k, of in enumerate(gpus)]
    logs = read_log(written(tmp_path, "\n".join(map(json.dumps, moments))))
    assert [(log.gpu, log.name) for log in logs] == [("0", "Foo"), ("1", "Foo")]
    assert logs[0].columns["power_w"].tolist() == pytest.approx([90, np.nan], nan_ok=True)
    assert logs[1].columns["power_w"].tolist() == [80, 85]


@pytest.mark.parametrize("title", ["TGP (W)", "wattage [W]", "power_a", "power_uw"])
def test_a_power_that_is_not_taken_is_named(tmp_path: Path, title: str) -> None:
    text = f"timestamp,{title},sm_clock_mhz,gpu_util\n1,300,1400,95\n2,300,1400,95\n"
    with pytest.warns(DataWarning, match=rf"left out: '{re.escape(title)}' \(whose power\?\)"):
        read_log(written(tmp_path, text))


BOXES = {
    "the box of": [
        "| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |\n",
        "[0] NVIDIA A100 80GB | 52°C,  98 %, 410 / 700 W | 40000 / 81559 MB | me(39000M)\n",
    ],
    "the table of llama-bench": ['build_commit,test_time,avg_ns,avg_ts,stddev_ts\n"8c",1,2,3,4\n'],
}  # as the tools print them


@pytest.mark.parametrize(("told", "text"), [(k, text) for k in BOXES for text in BOXES[k]])
def test_what_is_no_log_is_named(tmp_path: Path, told: str, text: str) -> None:
    with refused(told):
        read_log(written(tmp_path, text))


@pytest.mark.filterwarnings("ignore:.*time is '_timestamp'")
@pytest.mark.parametrize("joint", [", ", "\n"])
def test_rows_of_wandb_are_read_as_its_table(tmp_path: Path, joint: str) -> None:
    """Made, with the keys of a report script's history(stream='system'); a null is missing."""
    names = ("_timestamp", "system.gpu.0.powerWatts", "system.gpu.0.smClock", "system.gpu.0.gpu")
    cells = [(1772461200.5 + n, 90 + n if n else None, 1400, 95) for n in range(3)]
    rows = joint.join(
        json.dumps({**dict(zip(names, of, strict=True)), "_wandb": True}) for of in cells
    )
    [log] = read_log(written(tmp_path, f"[{rows}]" if joint == ", " else rows))
    assert log.columns["power_w"].tolist() == pytest.approx([np.nan, 91, 92], nan_ok=True)
    assert (log.gpu, *log.columns["engine_mhz"], *np.diff(log.seconds)) == ("0", *[1400] * 3, 1, 1)


@pytest.mark.filterwarnings("ignore:.*time is 'timestamp'")
@pytest.mark.parametrize("title", ["GPU Takt [MHz]", "GPU功率(W)"])
def test_a_title_of_another_tongue_is_asked_about_and_read_as_told(
    tmp_path: Path, title: str
) -> None:
    """Where nothing else tells what its unit is of."""
    other, named = ("power_w", "clock") if "MHz" in title else ("sm_clock_mhz", "power")
    text = f"timestamp,{title},{other},gpu_util\n1,300,300,95\n2,300,300,95\n"
    with refused(f"column '{re.escape(title)}' may be its {named}.*; title it") as caught:
        read_log(written(tmp_path, text))
    told = re.search(r"title it '(.*?)'", str(caught.value))
    assert told is not None
    [log] = read_log(written(tmp_path, text.replace(title, told[1])))
    assert {*log.columns} == {"power_w", "engine_mhz", "gpu_utilisation"}
    [log] = read_log(written(tmp_path, text.replace(other, told[1])))  # then it is known already
    assert "gpu_utilisation" in log.columns
