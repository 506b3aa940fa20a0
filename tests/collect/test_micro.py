"""Micro-benchmarks: what is launched, and how much work it is."""

import numpy as np
from synthetic.micro_benchmarks import GPU

from mlscale.collect.micro import page_walk, probes


class TestProbes:
    def test_sets_follow_the_cache(self) -> None:
        """2 MiB of L2: a chase through 1 MiB stays in it, one through 16 MiB does not."""
        words = {p.quantity: entry.case().arguments[0].size * 4 for p, entry in probes(GPU)[:6]}
        assert words["l2_latency"] == 1 << 20
        assert words["dram_latency"] == 16 << 20

    def test_memory_is_saturated(self) -> None:
        """64 warps on each of 16 CUs, and 8 loads of 16 bytes of each thread on their way."""
        volkov = [entry for p, entry in probes(GPU) if p.quantity == "volkov"]
        assert max(entry.threads for entry in volkov) == 64 * 32 * 16
        reads = [entry for p, entry in probes(GPU) if p.quantity.endswith("_delay")][:2]
        assert {entry.threads for entry in reads} == {64 * 32 * 16}

    def test_work_is_what_the_kernel_does(self) -> None:
        """Steps of a chase; a read's set in sectors of 32 bytes, by 16 CUs, as often as swept."""
        for probe, entry in probes(GPU)[:10]:
            data, *_, length = entry.case().arguments
            swept = data.nbytes / 32 / 16 * length
            assert probe.work == (length if probe.quantity.endswith("latency") else swept)

    def test_a_walk_stays_in_a_page_of_2_mib(self) -> None:
        """Every line once; the page changes only once for each page."""
        walk = page_walk(3 * 2**19)
        assert sorted(walk) == list(range(0, 3 * 2**19, 32))
        assert np.count_nonzero(np.diff(walk // 2**19)) == 2
