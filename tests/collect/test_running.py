"""Kernels that fail on a real device, the processor by PoCL: the others go on."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pocl
import pytest

from mlscale.collect import cases
from mlscale.collect.plan import Plan, select
from mlscale.collect.running import cache_file, carry_out
from mlscale.readers.kernel_tuner import read_document

HEAD = "ENTRY KERNEL(GLOBAL const float *in, GLOBAL float *out, int n)"
SOURCES = {
    "kills": "{ *(volatile GLOBAL int *)8 = 1; }",  # no page of any process
    "wrong": "{ if (BLOCK * THREADS + THREAD < n) out[BLOCK * THREADS + THREAD] = 2.0f; }",
    "broken": "{ out[0] = ; }",
}
COPIES = "{ int i = BLOCK * THREADS + THREAD; if (i < n) out[i] = in[i]; }"
COUNT = 1


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """The copy kernel, before and after three that fail as their names say."""
    device = pocl.needs_pocl()
    [copy] = select("small", ["copy"], "opencl")
    small = replace(copy, threads=1000, case=partial(cases._moved, n=1000))
    entries = [replace(small, name="first")]
    for name, text in SOURCES.items():
        (tmp_path / f"{name}.cu").write_text(f"{HEAD}\n{text}\n")
        entries.append(replace(small, name=name, source=str(tmp_path / name)))
    settings: dict[str, tuple[int, ...]] = {"engine_mhz": (), "memory_mhz": (), "cap_w": ()}
    return Plan("small", device, (*entries, replace(small, name="last")), (COUNT,), settings)


def test_a_kernel_that_fails_is_told_and_the_others_go_on(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writes where nothing is, which ends its process; the copy of n numbers is 2 nowhere.

    The next run tries them again: the one that was mended meanwhile is measured.
    """
    pocl.needs_pocl()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path / "elsewhere")
    cut_off = cache_file(tmp_path, "last", COUNT)
    cut_off.parent.mkdir()
    cut_off.write_text('{"device_name": "made", "cache": {"256,0,1": {"ti')  # as by a kill
    through: list[str] = []
    failed = carry_out(plan, tmp_path, lambda: through.append("a kernel"))
    assert failed["kills"].startswith("it ended its process (SIG")
    assert failed["wrong"].startswith("Kernel result verification failed")
    assert set(failed) == set(SOURCES)
    assert len(through) == 5
    assert not list(Path.cwd().iterdir())
    for name in ("first", "last"):
        [sample] = read_document(cache_file(tmp_path, name, COUNT))["cache"].values()
        assert sample["cu_count_granted"] == COUNT
        assert len(sample["times"]) == 7  # kernel_tuner's own number
    before = cache_file(tmp_path, "first", COUNT).read_bytes()
    (tmp_path / "broken.cu").write_text(f"{HEAD}\n{COPIES}\n")
    again = carry_out(plan, tmp_path, str)
    assert set(again) == {"kills", "wrong"}
    assert cache_file(tmp_path, "first", COUNT).read_bytes() == before
