"""A training job on a made GPU, in simulated time: what `mlscale.tune` sees of both.

Steps take and draw what a curve over the clock says, with noise, long steps, pauses, a warm-up,
evaluations, another job for a minute, a clock that falls as the GPU gets warm, and a counter of
energy with a step. The truth is the curve. No thread runs, nothing sleeps.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.sensors.boards import ENERGY, ENGINE, MEMORY, Sample, SettingError

NAME = "NVIDIA A100-SXM4-80GB"


@dataclass(frozen=True)
class Curve:
    """Time of a step over that at the highest clock, and power [W], over clocks [MHz], rising."""

    mhz: Any
    times: Any
    watts: Any

    def time(self, mhz: float) -> float:
        return float(np.exp(np.interp(np.log(mhz), np.log(self.mhz), np.log(self.times))))

    def power_w(self, mhz: float) -> float:
        return float(np.exp(np.interp(np.log(mhz), np.log(self.mhz), np.log(self.watts))))

    def energy(self, mhz: float) -> float:
        """Over that at the highest clock."""
        return self.time(mhz) * self.power_w(mhz) / self.watts[-1]

    def best_mhz(self, limit: float) -> float:
        """The clock of least energy that is slower by at most a share."""
        mhz = np.linspace(self.mhz[0], self.mhz[-1], 300)
        keeps = [one for one in mhz if self.time(one) <= 1 + limit + 1e-9]
        return float(min(keeps, key=self.energy))


def made_curve(share: float = 0.5) -> Curve:
    """Steps of which a share follows the clock; power by the clock's square above 150 W."""
    mhz = np.arange(600.0, 1411.0, 15.0)
    times = share * 1410 / mhz + 1 - share
    return Curve(mhz, times, 150 + 230 * (mhz / 1410) ** 2 / np.sqrt(times))


@dataclass(frozen=True)
class World:
    """What disturbs a job.

    noise: of a step; long_steps, pauses: shares of steps that take three times as long, or wait
    for 0.3 s on average; warm_steps: from three times as long; drift: an hour; falls: of the
    highest clock, after falls_s [s]; evaluation_s [s] every 200 steps; other: slower by another
    job, for a minute within the first 20; settle_s: within which a clock changes; counter_s: of
    energy; grows: (step, factor) from which work is more for good; keeps_lock: whether clocks are
    held; ahead: steps that the loop runs ahead; waits_every: steps after which alone it waits.
    """

    noise: float = 0.02
    long_steps: float = 0.01
    pauses: float = 0.01
    warm_steps: int = 30
    drift: float = 0.01
    falls: float = 0.02
    falls_s: float = 300.0
    evaluation_s: float = 30.0
    other: float = 0.4
    settle_s: tuple[float, float] = (0.2, 2.0)
    counter_s: float = 0.1
    grows: tuple[int, float] = (1 << 60, 1.0)
    keeps_lock: bool = True
    ahead: int = 0
    waits_every: int = 0


CALM = World(0.005, 0, 0, 0, 0, 0, 0, 0, 0)


class MadeBoard:
    """A board of `mlscale.sensors` with one curve; folder: where `locked` has its clock."""

    index, uuid, takes_away = "0", "made-job", ""

    def __init__(
        self, curve: Curve, name: str = NAME, memory_mhz: float = 1215.0, folder: Path | None = None
    ) -> None:
        self.name, self.curve, self.memory_mhz, self._folder = name, curve, memory_mhz, folder
        self.locked_mhz = 0
        self.may_set, self.breaks_after, self.holds = True, 1 << 60, 0

    def nearest_mhz(self, engine_mhz: float) -> int:
        return round(float(np.clip(engine_mhz, self.curve.mhz[0], self.curve.mhz[-1])))

    def settings(self) -> dict[str, Any]:
        return {"power_limit_mw": 400_000}

    def hold(self, settings: Mapping[str, int]) -> None:
        self.holds += 1
        if self.holds > self.breaks_after:
            raise SettingError("GPU is lost")
        self.locked_mhz = settings["engine_mhz"]
        self._write(str(self.locked_mhz))

    def put_back(self, before: Mapping[str, Any]) -> None:  # noqa: ARG002
        if not self.may_set:
            raise SettingError("Insufficient Permissions")
        self.locked_mhz = 0
        self._write("")

    def _write(self, text: str) -> None:
        if self._folder:
            (self._folder / "locked").write_text(text)

    def commands(self, engine_mhz: int) -> tuple[str, str]:
        return f"lock {engine_mhz}", "unlock"


class MadeJob:
    """The job, and the machine that a tuner sees. steps: how many it has.

    excess_s: lost by clocks below the highest. Iterate to run it: each turn is a step.
    """

    def __init__(self, board: MadeBoard, step_s: float, world: World = CALM, seed: int = 0) -> None:
        self.board, self.world, self.step_s = board, world, step_s
        self._random = np.random.default_rng(seed)
        self.gpu_s = self.cpu_s = self.excess_s = self._heat_s = 0.0
        self._ends, self._joules, self._clocks = [0.0], [0.0], [0.0]
        self.count = self.queued = 0
        self._drift = world.drift * self._random.choice([-1, 1])
        self.other_s = self._random.uniform(0, 1200)
        self._free = board.curve.mhz[-1]
        self._mhz = self._from_mhz = self._free
        self._settled_s = 0.0

    @property
    def joules(self) -> float:
        """Of the GPU until now."""
        return self._joules[-1]

    # The machine.

    def now_s(self) -> float:
        return self.cpu_s

    def boards(self, is_rank: bool) -> list[MadeBoard]:  # noqa: ARG002
        return [self.board]

    def watch(self, board: MadeBoard) -> None:
        pass

    def stop(self) -> None:
        pass

    def samples(self, begun_s: float, ended_s: float) -> list[tuple[float, Sample]]:
        times = np.arange(begun_s + 0.01, min(ended_s, self._ends[-1]), 0.1)
        first = max(0, int(np.searchsorted(self._ends, begun_s)) - 2)
        ends, joules, clocks = (one[first:] for one in (self._ends, self._joules, self._clocks))
        told = np.floor(times / self.world.counter_s) * self.world.counter_s
        energies = np.interp(told, ends, joules)
        places = np.minimum(np.searchsorted(ends, times), len(ends) - 1)
        return [
            (float(s), {ENERGY: float(j), ENGINE: clocks[p], MEMORY: self.board.memory_mhz})
            for s, j, p in zip(times, energies, places, strict=True)
        ]

    # The job.

    def __iter__(self) -> Iterator[int]:
        while True:
            yield self.count
            self.run_step()

    def run_step(self) -> None:
        """The loop gives a step to the GPU, and waits as the world says."""
        self.queued += 1
        self.count += 1
        self.cpu_s += 1e-4
        if self.world.waits_every:
            waits = self.queued if self.count % self.world.waits_every == 0 else 0
        else:
            waits = self.queued - self.world.ahead
        self.wait(waits)

    def wait(self, steps: int) -> None:
        """Until the GPU has done so many more of the steps that it was given."""
        for _ in range(steps):
            self.queued -= 1
            self._run()
            self.cpu_s = self.gpu_s

    def _run(self) -> None:
        world, curve, random = self.world, self.board.curve, self._random
        number = len(self._ends) - 1
        asked = self.board.locked_mhz if world.keeps_lock else 0
        mhz = float(asked or self._free)
        if mhz != self._mhz:
            self._from_mhz, self._mhz = self._mhz, mhz
            self._settled_s = self.gpu_s + random.uniform(*world.settle_s)
        if not asked and self._heat_s > world.falls_s:
            mhz = self._free * (1 - world.falls)
        time, watts = curve.time(mhz), curve.power_w(mhz) * (1 + 0.01 * random.standard_normal())
        work_s = self.step_s * time * (1 + world.noise * random.standard_normal())
        work_s *= 1 + self._drift * self.gpu_s / 3600
        if number >= world.grows[0]:
            work_s *= world.grows[1]
        if self.gpu_s < self._settled_s:
            share = min(1.0, (self._settled_s - self.gpu_s) / work_s)
            work_s *= share * curve.time(self._from_mhz) / time + 1 - share
            watts += share * (curve.power_w(self._from_mhz) - watts)
        if world.other and self.other_s < self.gpu_s < self.other_s + 60:
            work_s, watts = work_s * (1 + world.other), watts * 1.08
        more = 2.0 * (random.random() < world.long_steps)
        if world.warm_steps:
            more += 2 * max(0.0, 1 - number / world.warm_steps)
        idle_s = work_s * more
        if random.random() < world.pauses:
            idle_s += random.exponential(0.3)
        evaluation_s = world.evaluation_s * time if (number + 1) % 200 == 0 else 0.0
        took_s = work_s + idle_s + evaluation_s
        power_w = curve.power_w(mhz)
        joules = work_s * watts + idle_s * 0.5 * power_w + evaluation_s * 0.85 * power_w
        self.excess_s += (work_s + evaluation_s) * (1 - 1 / time)
        self._heat_s = (
            min(600.0, self._heat_s + took_s) if not asked else max(0.0, self._heat_s - took_s)
        )
        self.gpu_s = max(self.gpu_s, self.cpu_s - 1e-4) + took_s
        self._ends.append(self.gpu_s)
        self._joules.append(self._joules[-1] + joules)
        self._clocks.append(mhz)
