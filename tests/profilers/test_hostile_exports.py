"""Files made to exhaust: long lines, many columns, patterns that make a careless regex backtrack.

Each is refused, or read, in seconds and in memory that does not grow with it. The limits are ours.
"""

import signal
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic.exports import BASE, NCU, long_page, long_rows, read, rocprof_v1
from synthetic.tidy import refused

from mlscale import load
from mlscale.data.public import path
from mlscale.data.table_files import read_table
from mlscale.profilers import import_exports
from mlscale.profilers.exports import text_lines

SECONDS = 10.0  # of the processor: each takes well under one; without its guard, minutes


@contextmanager
def in_time() -> Iterator[None]:
    """The block must end soon; a regex that backtracks is interrupted too."""

    def late(*_: object) -> None:
        raise TimeoutError(f"took more than {SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def in_memory(megabytes: float) -> Iterator[None]:
    """The block must not hold more than that at any moment."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert peak < megabytes


class TestTime:
    @pytest.mark.parametrize("sign", ["=", "= ", "= Warning: "])
    def test_a_line_of_signs_before_no_table(self, tmp_path: Path, sign: str) -> None:
        with in_time(), refused("holds no table that mlscale knows"):
            read(tmp_path, sign * (400_000 // len(sign)))

    def test_a_line_of_signs_before_a_table(self, tmp_path: Path) -> None:
        with in_time():
            page = long_page(before="=" * 400_000 + "\n")
            assert read(tmp_path, page).launches == 1

    def test_very_many_columns(self, tmp_path: Path) -> None:
        names = ",".join(f"c{i}" for i in range(100_000))
        plain = rocprof_v1({"SQ_WAVES": 4, "last": 1}, times=[(0, 9)])
        header, row = plain.replace("last", names).splitlines()
        row = row.replace("4,1,", "4," + "1," * 100_000)
        with in_time():
            assert read(tmp_path, f"{header}\n{row}\n").launches == 1

    @pytest.mark.parametrize("line", ["- " * 2_000_000, "- " * 2_000_000 + "x", " " * 4_000_000])
    def test_dashes_and_blanks_without_end(self, tmp_path: Path, line: str) -> None:
        with in_time(), in_memory(60), refused("holds no table that mlscale knows"):
            read(tmp_path, f"output\n{line}\n{line}\n")

    def test_blanks_inside_a_name(self, tmp_path: Path) -> None:
        page = rocprof_v1({"SQ_WAVES": 4, "a" + " " * 130_000 + "b": 1}, times=[(0, 9)])
        with in_time():
            assert read(tmp_path, page).launches == 1

    @pytest.mark.parametrize("cell", ["1" * 130_000 + "x", "1" * 130_000, "1,111" * 20_000])
    def test_a_number_without_end(self, tmp_path: Path, cell: str) -> None:
        page = long_page(long_rows(metrics={**NCU, "dram__bytes_read.sum": ("byte", cell)}))
        with in_time(), refused("row .*, metric 'dram__bytes_read.sum': '1.*' is not a number"):
            read(tmp_path, page)

    def test_a_size_without_end(self, tmp_path: Path) -> None:
        with in_time(), refused("row .*, column 'Grid Size': .* is not a size"):
            read(tmp_path, long_page(long_rows(grid="(8" + " " * 100_000 + "x")))

    def test_very_many_columns_of_a_tidy_table(self, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        names = ",".join(f"c{i}" for i in range(100_000))
        file.write_text(f"kernel,{names}\nk{',1' * 100_000}\n")
        with in_time():
            assert len(read_table(file).numbers) == 100_000


class TestMemory:
    @pytest.mark.parametrize("before", ["", long_page()], ids=["first", "in the table"])
    @pytest.mark.parametrize("text", ["x", "1,", '"'])
    def test_a_line_of_100_mb(self, tmp_path: Path, before: str, text: str) -> None:
        file = tmp_path / "long.csv"
        with file.open("w") as opened:
            opened.write(before)
            for _ in range(100):
                opened.write(text * (1_000_000 // len(text)))
        with in_time(), in_memory(40), refused("is longer than 4 MiB"):
            import_exports([file])

    def test_a_trace_of_one_line(self, tmp_path: Path) -> None:
        """20 MB of events, of which a piece of 1 MiB at a time is held, and joined to the next."""
        file = tmp_path / "trace.json"
        event = '{"ph": "X", "cat": "cpu_op", "name": "' + "x" * 10_000 + '"},'
        kernel = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}'
        file.write_text('{"traceEvents": [' + event * 2000 + kernel + "]}")
        with in_time(), in_memory(12):
            assert import_exports([file], device="made-gpu", base=BASE).launches == 1

    def test_launches_do_not_add_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ten times the launches of one kernel take no more memory; 1 MB for what else moves.

        The blocks are small here, so that both files are of several.
        """
        monkeypatch.setattr(text_lines, "BLOCK", 1 << 16)
        peaks = []
        for launches in (100, 1000):
            pages = long_page(*(long_rows(i) for i in range(launches)))
            (tmp_path / "run.csv").write_text(pages)
            base = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 500.0}
            tracemalloc.start()
            imported = import_exports([tmp_path / "run.csv"], device="made-gpu", base=base)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert imported.launches == launches
        assert peaks[1] - peaks[0] < 1e6


class TestWhatUnpacks:
    def test_a_small_parquet_file_of_very_many_rows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Zeros compress a thousandfold; the limit is lowered so that the test stays small."""
        file = tmp_path / "bomb.parquet"
        pq.write_table(pa.table({"time_ms": np.zeros(1_000_000)}), file, compression="zstd")
        assert file.stat().st_size < 10_000
        assert len(read_table(file)) == 1_000_000
        monkeypatch.setattr("mlscale.data.parquet._LARGEST_BYTES", 7_999_999)
        with refused(f"{file}: unpacks to 1000000 rows x 1 columns"):
            read_table(file)

    def test_a_small_parquet_file_of_long_text(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "bomb.parquet"
        pq.write_table(pa.table({"kernel": ["k" * 1_000_000]}), file, compression="zstd")
        monkeypatch.setattr("mlscale.data.parquet._LARGEST_BYTES", 500_000)
        with refused("unpacks to 1 rows x 1 columns"):
            read_table(file)

    def test_a_model_file_of_many_large_members(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mlscale.model_file._LARGEST_BYTES", 1_000_000)
        file = tmp_path / "bomb.mlscale"
        file.write_bytes(path("simulated-gcn3.mlscale").read_bytes())
        assert load(file).device == "simulated-gcn3"
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
            for i in range(3):
                archive.writestr(f"arrays/bomb{i}.npy", bytes(400_000))
        with refused(f"{file}: is not a whole mlscale model file: unpacks to more than"):
            load(file)
