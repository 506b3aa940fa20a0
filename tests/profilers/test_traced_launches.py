"""Nsight Systems' SQLite and PyTorch's Chrome traces of the same launches say the same."""

from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic.traces import BUSY_S, SPAN_S, F, G, chrome_trace, write_json, write_sqlite

from mlscale import InputError
from mlscale.profilers import import_exports

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 1410.0, "memory_mhz": 1215.0}
Devices = tuple[int, ...]
Write = Callable[[Path, Devices], Path]


def write_chrome(path: Path, devices: Devices) -> Path:
    return write_json(path, chrome_trace(devices=devices))


def write_nsys(path: Path, devices: Devices) -> Path:
    return write_sqlite(path, devices=devices)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("run.json", write_chrome),
        ("run.pt.trace.json.gz", write_chrome),
        ("run 1%#?.sqlite", write_nsys),
    ],
)
class TestTracedLaunches:
    def test_counts_sizes_span_and_gpu(self, tmp_path: Path, name: str, write: Write) -> None:
        """The run of LAUNCHES, 8 x 2 workgroups of 128 threads, 4 of 64 x 2; copies, operators
        and annotations are no kernels."""
        table = import_exports([write(tmp_path / name, (0, 0, 0))], base=CLOCKS).table
        assert table.text["device"][0] == "a100-sxm4-40gb"
        assert table.text["kernel"] == [F, G]
        assert table.numbers["launches"].tolist() == [2, 1]
        assert table.numbers["time_ms"] == pytest.approx([0.04, 0.02])
        assert table.numbers["workgroups"].tolist() == [16, 4]
        assert table.numbers["workgroup_size"].tolist() == [128, 128]
        assert table.metadata["idle_ms"] == pytest.approx(1e3 * (SPAN_S - BUSY_S))

    def test_of_several_gpus_one_is_chosen(self, tmp_path: Path, name: str, write: Write) -> None:
        path = write(tmp_path / name, (0, 1, 1))
        with pytest.raises(InputError, match=r"GPUs 0 \(1 launch\), 1 \(2 launches\); choose"):
            import_exports([path], base=CLOCKS)
        assert import_exports([path], base=CLOCKS, gpu="1").launches == 2
