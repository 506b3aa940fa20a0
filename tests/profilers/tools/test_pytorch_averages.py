"""The table that PyTorch's key_averages() prints. Made files."""

from pathlib import Path

import pytest
from synthetic.exports import read
from synthetic.traces import averages

from mlscale import DataWarning, InputError

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
OPERATOR = ("aten::mm", "12.979us", "90.000us", 3)
KERNEL = ("gemm_128x64", "0.000us", "0.060ms", 2)
OTHER = ("void add<float>", "0.000us", "30.000us", 1)
COPY = ("Memcpy HtoD (Pageable -> Device)", "0.000us", "10.000us", 4)


def test_kernels_alone_count(tmp_path: Path) -> None:
    """60 us in 2 launches, 30 us in 1; the operator's own time is theirs, the copy is no kernel."""
    table = read(tmp_path, averages(OPERATOR, KERNEL, OTHER, COPY)).table
    assert table.text["kernel"] == ["gemm_128x64", "void add<float>"]
    assert table.numbers["launches"].tolist() == [2, 1]
    assert table.numbers["total_time_ms"] == pytest.approx([0.06, 0.03])


def test_a_table_of_operators_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has operators and no kernels .* the Chrome trace"):
        read(tmp_path, averages(OPERATOR))


def test_a_table_that_was_cut_short_is_warned_of(tmp_path: Path) -> None:
    """60 of 100 us."""
    with pytest.warns(DataWarning, match=r"60 % of the GPU's time; print it with row_limit=-1"):
        read(tmp_path, averages(OPERATOR, KERNEL))


def test_rows_behind_a_blank_line_are_warned_of(tmp_path: Path) -> None:
    """A damaged file: 60 of 100 us stand before the blank line."""
    text = averages(OPERATOR, KERNEL, OTHER, COPY)
    lines = text.splitlines(keepends=True)
    lines.insert(6, "\n")
    with pytest.warns(DataWarning, match=r"60 % of the GPU's time"):
        read(tmp_path, "".join(lines))


def test_annotations_among_the_kernels_are_refused(tmp_path: Path) -> None:
    """190 us of 100: a range of the GPU counts what the kernels in it count."""
    span = ("my range", "0.000us", "90.000us", 1)
    with pytest.raises(InputError, match=r"take 1\.90 times the total below the table"):
        read(tmp_path, averages(span, OPERATOR, KERNEL, OTHER, COPY))


def test_names_that_are_cut_off_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="1 names of kernels are cut off"):
        read(tmp_path, averages(("void add<flo...", *KERNEL[1:]), OTHER, COPY))


def test_several_tables_are_refused(tmp_path: Path) -> None:
    """A line of output, dashes, the header in row 3; the same again 10 lines below."""
    text = averages(KERNEL, OTHER, COPY)
    assert text.count("\n") == 10
    with pytest.raises(InputError, match="has tables of kernels in rows 3, 13; each"):
        read(tmp_path, text + text)


def test_a_table_without_the_gpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 3: has no time of the GPU .*'Self CUDA'"):
        read(tmp_path, averages(KERNEL).replace("Self CUDA", " CPU time"))
