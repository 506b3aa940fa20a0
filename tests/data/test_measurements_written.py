"""Measurements written and read back, to the last bit."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import kernels as made
from synthetic.tidy import same_bits

from mlscale import ConfigGrid, Measurements, read
from mlscale.data.devices import find_device
from mlscale.data.table import LARGEST_COUNTER, LEAST, MOST


@st.composite
def measurements(draw: st.DrawFn) -> Measurements:
    """Any measurements: unequal repetitions, missing counters, names with commas and quotes.

    The GPU is none that the device table knows, as its clocks would be held to what it can have;
    those of any GPU are below 10 000 MHz.
    """
    count, *shape = draw(st.tuples(*[st.integers(1, 2)] * 4))
    printed = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
    text = st.text(printed, min_size=1, max_size=6)
    name = st.one_of(text.filter(str.strip), st.sampled_from(['a,"b"', "f<1,2>", "µs", "nan"]))
    kernels = draw(st.lists(name, min_size=count, max_size=count, unique=True))
    axes = [
        tuple(sorted(draw(st.lists(steps, min_size=n, max_size=n, unique=True))))
        for n, steps in zip(shape, (st.integers(1, 512), *[st.floats(10, 1e4)] * 2), strict=True)
    ]
    repeated = draw(arrays(np.bool_, (1, count, *shape)))
    there = np.concatenate([np.ones_like(repeated), repeated])[: 1 + int(repeated.any())]
    time_ms, power_w = (
        arrays(np.float64, there.shape, elements=st.floats(LEAST, most)) for most in (MOST, 5e3)
    )
    counts = st.floats(0, LARGEST_COUNTER, exclude_max=True) | st.just(np.nan)
    counters = draw(arrays(np.float64, (*there.shape, 2), elements=counts))
    return Measurements(
        device=draw(name.filter(lambda text: find_device(text) is None)),
        grid=ConfigGrid(*axes),
        kernels=tuple(kernels),
        applications=tuple(draw(st.lists(name, min_size=count, max_size=count))),
        time_samples=np.where(there, draw(time_ms), np.nan),
        power_samples=np.where(there, draw(power_w), np.nan) if draw(st.booleans()) else None,
        counter_names=("inst_executed", "L2 (hit, %)"),
        counter_samples=np.where(there[..., None], counters, np.nan),
        metadata=draw(st.sampled_from([{}, {"origin": "made", "faults": {"k": "µ"}}])),
    )


class TestWrittenAndRead:
    """Truth: what was written."""

    @staticmethod
    def check(written: Measurements, path: Path) -> None:
        written.write(path)
        again = read(path)
        for name in ("device", "grid", "kernels", "applications", "counter_names", "metadata"):
            assert getattr(again, name) == getattr(written, name)
        assert same_bits(again.time_samples, written.time_samples)
        assert same_bits(again.counter_samples, written.counter_samples)
        assert (again.power_samples is None) == (written.power_samples is None)
        if written.power_samples is not None:
            assert same_bits(again.power_samples, written.power_samples)

    @pytest.mark.filterwarnings(
        "ignore:.*(repetitions differ|change by far more|no counter|every counter)"
    )
    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    @settings(max_examples=60)
    @given(written=measurements())
    def test_same_to_the_last_bit(self, suffix: str, written: Measurements) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.check(written, Path(folder) / f"table.{suffix}")

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_the_simulated_set(self, data_folder: Path, tmp_path: Path, suffix: str) -> None:
        written = read(data_folder / "mgpusim" / "gcn3-scaling.csv")
        self.check(written, tmp_path / f"table.{suffix}")

    def test_a_frame_has_a_row_for_each_measurement(self) -> None:
        # Hand: 4 groups x 3 kernels x 36 configurations; columns of the tidy table in order.
        frame = made.measurements().to_frame()
        assert len(frame) == 432
        identity = ("device", "application", "kernel", "cu_count", "engine_mhz", "memory_mhz")
        assert tuple(frame.columns[:8]) == (*identity, "time_ms", "power_w")
        one = frame[(frame.kernel == "compute1") & (frame.cu_count == 8)]
        one = one[(one.engine_mhz == 600) & (one.memory_mhz == 700)]
        expected = made.measurements().time_ms[1, 1, 1, 1]
        assert one.time_ms.tolist() == [expected]
