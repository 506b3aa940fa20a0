"""The Chrome trace of PyTorch's profiler, and JSON that comes in pieces. Made files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.traces import chrome_trace, write_json

from mlscale import InputError
from mlscale.profilers import ImportedTable, import_exports
from mlscale.profilers.exports import json_chunks
from mlscale.profilers.exports.json_chunks import JsonValues

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 1410.0, "memory_mhz": 1215.0}


def load(path: Path, **options: Any) -> ImportedTable:
    return import_exports([path], base=CLOCKS, **options)


def test_times_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    """A float holds 1.7e15 us to within a quarter of one: 1 ns of idle would be lost."""
    text = json.dumps(chrome_trace())
    for begin, shown in (("100", "1695835573000100.0"), ("130", "1695835573000130.0"),
                         ("160", "1695835573000160.0")):  # fmt: skip
        assert shown in text, begin
    text = text.replace("1695835573000160.0", "1695835573000150.001")
    path = tmp_path / "run.json"
    path.write_text(text)
    assert load(path).table.metadata["idle_ms"] == pytest.approx(1e-6, rel=1e-3)


def test_what_it_says_of_the_gpu_may_come_last(tmp_path: Path) -> None:
    document = chrome_trace()
    properties = document.pop("deviceProperties")
    path = write_json(tmp_path / "run.json", {**document, "deviceProperties": properties})
    assert load(path).table.text["device"][0] == "a100-sxm4-40gb"


def test_amds_grid_is_not_taken_and_its_numbers_count_other_devices(tmp_path: Path) -> None:
    document = chrome_trace(
        devices=(2, 2, 2),
        deviceProperties=[{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}],
    )
    for event in document["traceEvents"]:
        event.get("args", {}).pop("registers per thread", None)
    path = write_json(tmp_path / "run.json", document)
    table = load(path).table
    assert table.text["device"][0] == "mi300x"
    assert "workgroups" not in table.numbers
    assert len(load(path, each=True).table) == 3


def test_a_launch_without_a_time_is_left_out(tmp_path: Path) -> None:
    document = chrome_trace()
    del document["traceEvents"][-1]["dur"]
    with pytest.warns(match="1 row without a positive time was left out"):
        assert load(write_json(tmp_path / "run.json", document)).launches == 2


def test_without_kernels(tmp_path: Path) -> None:
    document = chrome_trace()
    document["traceEvents"] = document["traceEvents"][:4]
    with pytest.raises(InputError, match=r"no kernels were traced; profile with .*\.CUDA"):
        load(write_json(tmp_path / "run.json", document))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (lambda text: text[:-500], "is no valid JSON .*cut off"),
        (lambda text: text.replace(b'"ph"', b'"ph', 1), "is no valid JSON"),
        (lambda text: text.replace(b'"args": {', b'"args": ' + b"[" * 100_000, 1), "no valid JSON"),
        (lambda text: gzip.compress(text)[:-20], "cannot be unpacked: .*cut off"),
        (lambda _: gzip.compress(b'{"a": 1}'), "no trace of PyTorch's profiler"),
        (lambda _: b'{"traceEvents": []}', "its traceEvents are missing or empty"),
        (
            lambda _: gzip.compress(b"Name,Calls\nf,1\n"),
            "compressed, and not PyTorch's trace, which",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, damaged: Any, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(damaged(json.dumps(chrome_trace()).encode()))
    with pytest.raises(InputError, match=message):
        load(path)


def test_a_file_that_unpacks_beyond_the_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds are ours: smaller here, so that the test is quick."""
    monkeypatch.setattr(json_chunks, "MOST_CHARACTERS", 3 << 20)
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(b'{"a": [' + b"1, " * (2 << 20) + b"1]}"))
    with pytest.raises(InputError, match="unpacks to more than"):
        load(path)
    monkeypatch.setattr(json_chunks, "LONGEST_VALUE", 1 << 20)
    with pytest.raises(InputError, match="has a value longer than 1 MiB"):
        load(path)


SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5)
NAMES = st.text(max_size=5)
JSON = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(NAMES, SCALARS, max_size=3)


@given(
    st.dictionaries(NAMES, JSON, max_size=3),
    st.lists(JSON, max_size=3),
    st.integers(1, 30),
    st.sampled_from([None, 2]),
)
def test_pieces_of_any_length_give_what_the_whole_gives(
    members: dict[str, Any], events: list[Any], length: int, indent: int | None
) -> None:
    """Against json.loads of the whole."""
    text = json.dumps({**members, "traceEvents": events}, indent=indent)
    pieces = [text[i : i + length] for i in range(0, len(text), length)]
    values = list(JsonValues("made", iter(enumerate(pieces, 1))))
    assert [value for name, value in values if name == "traceEvents"] == events
    assert {name: value for name, value in values if name != "traceEvents"} == members


def test_a_size_that_no_launch_has_is_missing(tmp_path: Path) -> None:
    """10^400 is no float; CUDA's and HIP's grids are below 2^31 along each side."""
    document = chrome_trace()
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    for event in kernels:
        event["args"]["grid"] = [10**400, 1, 1]
    document["deviceProperties"][0]["numSms"] = 10**400
    table = load(write_json(tmp_path / "run.json", document), device="a100-sxm4-40gb").table
    assert table.numbers["launches"].tolist() == [2, 1]
    assert "workgroups" not in table.numbers
