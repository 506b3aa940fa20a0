"""Micro-benchmarks: what is launched, and how much work it is."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic.micro_benchmarks import GPU

from mlscale.collect import plan as micro
from mlscale.collect.plan import page_walk, probes

MIB = 1 << 20
# SMs or CUs, L2 cache, threads that one holds, threads of a warp: as the vendors' papers say.
GPUS = {
    "gtx980": (16, 2 * MIB, 2048, 32),
    "v100": (80, 6 * MIB, 2048, 32),
    "t4": (40, 4 * MIB, 1024, 32),
    "rtx3090": (82, 6 * MIB, 1536, 32),
    "h100": (132, 50 * MIB, 2048, 32),
    "mi210": (104, 8 * MIB, 2048, 64),
}
PROBES = [*probes(GPU)]


class TestProbes:
    @pytest.mark.parametrize("name", GPUS)
    def test_of_any_gpu(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Half of the L2 cache or less stays in it, six times the cache and more does not.

        And no more warps on a CU than it holds: others would wait for them.
        """
        no_memory = np.uint32(0)  # their size alone is looked at
        monkeypatch.setattr(micro, "bits", lambda words: np.broadcast_to(no_memory, words))
        cu_count, l2_bytes, held, wave = GPUS[name]
        sizes = {"cu_count": cu_count, "l2_bytes": l2_bytes, "threads_per_cu": held}
        every = [*probes(replace(GPU, wave_size=wave, **sizes))]
        first = {probe.quantity: entry for probe, entry in reversed(every)}
        data = {n: first[f"{n}_delay"].case().arguments[0].nbytes for n in ("l2", "dram")}
        assert l2_bytes / 4 < data["l2"] <= l2_bytes / 2
        assert data["dram"] > 6 * l2_bytes
        most = max(probe.warps for probe, _ in every)
        assert held / 2 < most * wave <= held

    def test_memory_is_saturated(self) -> None:
        """64 warps on each of 16 CUs, and 8 loads of 16 bytes of each thread on their way."""
        for quantity in ("volkov", "dram_delay"):
            entries = [entry for p, entry in PROBES if p.quantity == quantity]
            assert max(entry.threads for entry in entries) == 64 * 32 * 16

    def test_work_is_what_the_kernel_does(self) -> None:
        """Steps of a chase; a read's set in sectors of 32 bytes, by 16 CUs, as often as swept."""
        for probe, entry in PROBES[:10]:
            data, *_, length = entry.case().arguments
            swept = data.nbytes / 32 / 16 * length
            assert probe.work == (length if probe.quantity.endswith("latency") else swept)

    def test_a_walk_stays_in_a_page_of_2_mib(self) -> None:
        """Every line once; the page changes only once for each page."""
        walk = page_walk(3 * 2**19)
        assert sorted(walk) == list(range(0, 3 * 2**19, 32))
        assert np.count_nonzero(np.diff(walk // 2**19)) == 2
