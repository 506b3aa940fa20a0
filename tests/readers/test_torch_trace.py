"""PyTorch's Chrome trace: made ones (synthetic/traces.py); real ones: test_exports.py."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summed_runs import run_of, totals
from synthetic.tidy import refused
from synthetic.traces import F, G, chrome_trace, write_json

from mlscale.readers import torch_trace
from mlscale.readers.torch_trace import members as members_of


@pytest.mark.parametrize("category", ["kernel", "Kernel"])
@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_kernels_alone_are_launches(tmp_path: Path, name: str, category: str) -> None:
    """f twice, 80 us, g once, 20 us; operators, copies and annotations are none."""
    document = chrome_trace()
    for event in document["traceEvents"][4:]:
        event["cat"] = category
    run = run_of(write_json(tmp_path / name, document))
    assert list(run.groups) == [(F, 16, 128, ""), (G, 4, 128, "")]
    assert [1e6 * sums.time_total_s for sums in run.groups.values()] == pytest.approx([80, 20])
    assert len(run_of(tmp_path / name, each=True).groups) == 3


def test_amds_grid_is_not_taken_and_its_numbers_count_other_devices(tmp_path: Path) -> None:
    document = chrome_trace(
        devices=(2, 2, 2),
        deviceProperties=[{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}],
    )
    for event in document["traceEvents"]:
        event.get("args", {}).pop("registers per thread", None)
    run = run_of(write_json(tmp_path / "run.json", document))
    assert list(run.groups) == [(F, None, None, ""), (G, None, None, "")]
    assert run.facts.seen == {"device_name": {"AMD Instinct MI300X": 1}, "cu_count": {304: 1}}


def test_a_launch_without_a_time_and_sizes_that_none_has(tmp_path: Path) -> None:
    """CUDA's and HIP's grids are below 2^31 along each side; 10^400 is no float."""
    document = chrome_trace()
    kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
    del kernels[2]["dur"]
    kernels.append({**kernels[0], "dur": float("nan")})  # which Python writes and reads
    kernels.append({**kernels[0], "dur": 10**400})
    document["traceEvents"] += kernels[3:]
    for event in kernels:
        event["args"]["grid"] = [10**400, 1, 1]
    document["deviceProperties"][0]["numSms"] = 10**400
    run = run_of(write_json(tmp_path / "run.json", document))
    assert list(run.groups) == [(F, None, 128, ""), (G, None, 128, "")]
    assert totals(run)[1] == 2
    assert (run.dropped, run.untimed) == (3, {F})
    assert "cu_count" not in run.facts.seen


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (lambda text: text[:-500], "is not valid JSON .*cut off"),
        (lambda text: text.replace(b'"ph"', b'"ph', 1), "is not valid JSON at"),
        (
            lambda text: text.replace(b'"args": {', b'"args": ' + b"[" * 100_000, 1),
            "not valid JSON",
        ),
        (lambda text: gzip.compress(text)[:-20], "cannot be unpacked: .*cut off"),
        (lambda _: b'{"traceEvents": []}', r"no kernels were traced; profile with .*\.CUDA among"),
        (lambda text: text.replace(b'"kernel"', b'"cpu_op"'), "no kernels were traced"),
        (lambda text: text.replace(b'"name": "g(float)"', b'"name": ""'), "row 2: .* is empty"),
    ],
)
def test_refused(tmp_path: Path, damaged: Any, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(damaged(json.dumps(chrome_trace()).encode()))
    with refused(message):
        run_of(path)


def test_a_value_that_does_not_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is ours: smaller here, so that the test is quick."""
    monkeypatch.setattr(torch_trace, "_LONGEST_VALUE", 1 << 20)
    path = tmp_path / "run.json.gz"
    numbers = b"1, " * (2 << 20)
    path.write_bytes(gzip.compress(b'{"traceEvents": [], "a": [' + numbers + b"1]}"))
    with refused("has a value longer than 1 MiB"):
        run_of(path)


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
    pieces = iter([text[i : i + length] for i in range(0, len(text), length)])
    values = list(members_of(Path("made"), pieces))
    assert [value for name, value in values if name == "traceEvents"] == events
    assert {name: value for name, value in values if name != "traceEvents"} == members
