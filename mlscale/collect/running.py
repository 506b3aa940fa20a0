"""A plan carried out on a GPU: a result for each step, as JSON values."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from mlscale.collect.clocks import ClockKeeper
from mlscale.collect.device import EntryError, GpuError, MeasuredGpu
from mlscale.collect.entries import Case, Entry
from mlscale.collect.measuring import measure
from mlscale.collect.plan import Plan, PlanStep
from mlscale.records import Progress

Result = dict[str, Any]
# Counters of the entries at a step's CU count and clocks: by kernel, by name.
Profiler = Callable[[PlanStep], Result]


def carry_out(
    gpu: MeasuredGpu, plan: Plan, kept: Progress, keeper: ClockKeeper, profiler: Profiler | None
) -> Iterator[tuple[int, Result]]:
    """Take every sample that is not kept yet; yields number and result, those kept included.

    A kernel that failed (no such units, wrong result) is left out of what follows. Raises
    GpuError, ClockError, and InputError where the disk is full.
    """
    failed = {
        step.entry.name: kept.done[number]["failed"]
        for number, step in enumerate(plan.steps())
        if step.entry and "failed" in kept.done.get(number, {})
    }
    bench = _Bench(gpu)
    with ExitStack() as stack:
        stack.callback(bench.close)
        for number, step in enumerate(plan.steps()):
            if number not in kept.done:
                kept.add(number, _result(bench, plan, step, keeper, profiler, failed))
            yield number, kept.done[number]


def _result(
    bench: "_Bench",
    plan: Plan,
    step: PlanStep,
    keeper: ClockKeeper,
    profiler: Profiler | None,
    failed: dict[str, str],
) -> Result:
    if step.entry is None:
        bench.close()
        keeper.set(step.clocks)
        return profiler(step) if profiler else {}
    if step.entry.name in failed:
        return {"failed": failed[step.entry.name]}
    keeper.set(step.clocks)
    try:
        return bench.sample(step.entry, step, plan.window_s)
    except EntryError as error:
        failed[step.entry.name] = str(error)
        return {"failed": str(error)}


class _Bench:
    """The GPU with what is kept between samples: the partition, and the inputs of a kernel."""

    def __init__(self, gpu: MeasuredGpu) -> None:
        self._gpu = gpu
        self._partition: Any = None
        self._entry: Entry | None = None
        self._case: Case | None = None
        self._used: dict[int, int] = {}

    def sample(self, entry: Entry, step: PlanStep, window_s: float) -> Result:
        """Check the kernel's result, then measure it. Raises EntryError where it is wrong."""
        if entry.capability > self._gpu.info.capability:
            raise EntryError(
                f"kernel '{entry.name}' needs compute capability {entry.capability / 10:g}"
            )
        if self._case is None or self._entry is not entry:
            self._entry, self._case = entry, entry.case()
        self._open(step.cu_count)
        with _closing(self._partition.prepare(entry, self._case)) as launch:
            launch.submit(1).elapsed_ms()
            error = self._case.error(launch.outputs(tuple(self._case.expected)))
            if not error <= self._case.tolerance:
                raise EntryError(
                    f"kernel '{entry.name}' gives a wrong result at {step.cu_count} CUs: off by "
                    f"{error:.1e}, {self._case.tolerance:.1e} is accepted"
                )
            sample = measure(launch, self._gpu.sensors, window_s, step.clocks.locked)
        return {"used": self._used[step.cu_count], "error": error, **sample.as_dict()}

    def _open(self, cu_count: int) -> None:
        if self._partition is not None and self._partition.cu_count == cu_count:
            return
        self.close()
        try:
            self._partition = self._gpu.partition(cu_count)
        except EntryError as error:
            raise GpuError(f"{cu_count} CUs cannot be set apart: {error}") from None
        if cu_count not in self._used:
            self._used[cu_count] = self._partition.used_cu_count()

    def close(self) -> None:
        """Give the multiprocessors back."""
        if self._partition is not None:
            self._partition.close()
            self._partition = None


@contextmanager
def _closing(launch: Any) -> Iterator[Any]:
    try:
        yield launch
    finally:
        launch.close()
