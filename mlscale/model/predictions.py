"""Predictions: the surfaces of profiled kernels, and the absolute numbers that follow from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.supply import Supply, drawn_w, supply_of, with_held_ends
from mlscale.data.surfaces import (
    Surfaces,
    absolute_values,
    by_power_laws,
    interpolate,
    run_in_sequence,
)
from mlscale.errors import extra_named
from mlscale.text import counted

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = (
    "kernel",
    "cu_count",
    "engine_mhz",
    "memory_mhz",
    "time_ms",
    "time_factor",
    "power_w",
    "power_factor",
    "energy_mj",
    "time_ms_low",
    "time_ms_high",
    "power_w_low",
    "power_w_high",
    "flags",
)
COVERAGE = 0.9  # of the intervals that `mlscale predict` prints
INTERVAL = f"{100 * COVERAGE:g} % interval"  # as tables head it
INTERPOLATED, EXTRAPOLATED = "interpolated", "extrapolated"
MEASURED, TIME_MEASURED = "measured", "time measured"
ABOVE_LIMIT = "above power limit"

Column = NDArray[Any]
Targets = Sequence[HardwareConfig]
Marks = tuple[str, ...]


def coverage_of_each(count: int) -> float:
    """Coverage of each of several intervals, so that all hold at once for at least COVERAGE.

    By Bonferroni's inequality: each misses that many times less often.
    """
    return 1 - (1 - COVERAGE) / count


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Mapping[str, Surfaces]):
    """What a model predicts for K profiled kernels; `predictions['time']` gives the `Surfaces`.

    surfaces: by quantity, 'time' and, where model and profiles have it, 'power'. coverage: of
    their intervals, None without. warnings: what a reader should know of all of them.
    trained_range: the settings that training speaks for, where the grid goes beyond; else None.
    run_drawn_w: the most that any kernel of the run was measured to draw, where these are only
    some of them [W]; 0 where that is not known.
    """

    profiles: Profiles
    surfaces: dict[str, Surfaces]
    coverage: float | None = None
    warnings: tuple[str, ...] = ()
    trained_range: ConfigGrid | None = None
    run_drawn_w: float = 0.0

    def __repr__(self) -> str:
        return (
            f"<Predictions of {' and '.join(self.surfaces)}: "
            f"{counted(len(self.profiles.kernels), 'kernel')} on '{self.device}', {self.grid.text}>"
        )

    def __getitem__(self, quantity: str) -> Surfaces:
        return self.surfaces[quantity]

    def __iter__(self) -> Iterator[str]:
        return iter(self.surfaces)

    def __len__(self) -> int:
        return len(self.surfaces)

    @property
    def grid(self) -> ConfigGrid:
        """The grid that the surfaces are on."""
        return self.surfaces["time"].grid

    @property
    def base(self) -> HardwareConfig:
        """The configuration that the factors are relative to."""
        return self.profiles.base

    @property
    def device(self) -> str:
        """The GPU of the kernels."""
        return self.profiles.device

    @cached_property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """For each kernel what its predictions rest on, each flag once."""
        by_kernel = zip(*(surfaces.flags for surfaces in self.surfaces.values()), strict=True)
        return tuple(tuple(dict.fromkeys(sum(flags, ()))) for flags in by_kernel)

    @cached_property
    def supply(self) -> Supply:
        """What the board supplies."""
        return supply_of(self.device, drawn_w(self.profiles), self.run_drawn_w)

    @cached_property
    def time_ms(self) -> Floats:
        """Time (K, C, E, M) [ms]."""
        return self._absolute("time")

    @cached_property
    def power_w(self) -> Floats | None:
        """Power (K, C, E, M) [W], None where it is not predicted."""
        return self._absolute("power") if "power" in self.surfaces else None

    @cached_property
    def energy_mj(self) -> Floats | None:
        """Energy (K, C, E, M) [mJ], time x power; None without power."""
        return None if self.power_w is None else self.time_ms * self.power_w

    def _absolute(self, quantity: str) -> Floats:
        factors = self.surfaces[quantity].values  # noqa: PD011 (no DataFrame)
        return absolute_values(factors, self.profiles.quantity(quantity))

    def columns(self, targets: Targets | None = None) -> dict[str, Column]:
        """Return the table of `mlscale predict`: COLUMNS, a row for each kernel and target.

        targets: by default every configuration of the grid, and the further points; between two of
        the grid's steps a prediction is interpolated, beyond the trained range extrapolated, and
        flagged so, as is power that the board cannot supply. At a further point stands what was
        measured, with a flag. Where only the interval is above what the board supplies, it ends as
        `with_held_ends` says. What cannot be given is NaN; the flags of a row are joined by '; '.
        Raises InputError outside the grid's range.
        """
        targets = self._with_points(targets)
        configs, marks = self._targets(targets)
        kernels, count = len(self.profiles.kernels), len(configs)
        table: dict[str, Column] = dict.fromkeys(COLUMNS, np.full(kernels * count, np.nan))
        table["kernel"] = np.repeat(np.array(self.profiles.kernels, dtype=object), count)
        for axis in AXES:
            table[axis] = np.tile([getattr(config, axis) for config in configs], kernels)
        for quantity, name in QUANTITIES.items():
            if quantity not in self.surfaces:
                continue
            surfaces, at_base = self.surfaces[quantity], self.profiles.quantity(quantity)
            factors = self._at(surfaces.values, targets)
            table[f"{quantity}_factor"] = factors.ravel()
            table[name] = absolute_values(factors, at_base).ravel()
            if surfaces.low is not None:
                low = absolute_values(self._at(surfaces.low, targets), at_base)
                table[f"{name}_low"] = low.ravel()
        for quantity, high in self._high_ends(targets).items():
            table[f"{QUANTITIES[quantity]}_high"] = high.ravel()
        self._put_measured(table, configs)
        table["energy_mj"] = table["time_ms"] * table["power_w"]
        table["flags"] = np.full(kernels * count, "", dtype=object)
        for mark in dict.fromkeys(marks):
            texts = ["; ".join((*mark, *flags)) for flags in self.flags]
            rows = np.tile(np.array([own == mark for own in marks]), kernels)
            notes = np.repeat(np.array(texts, dtype=object), count)
            table["flags"] = np.where(rows, notes, table["flags"])
        for row, mark in self._measured_marks(configs).items():
            table["flags"][row] = "; ".join((*mark, *self.flags[row // count]))
        is_above = self._is_above_limit(table)
        table["flags"][is_above] = [
            "; ".join(filter(None, (ABOVE_LIMIT, flags))) for flags in table["flags"][is_above]
        ]
        return table

    def whole_run(self, targets: Targets | None = None) -> dict[str, Column]:
        """Return `columns` without the kernel for the whole run, a row for each target (T,).

        Times [ms] and energies [mJ] are summed over all launches of all kernels, the ends of
        intervals too, as if all were off to the same side; power is energy / time, and its ends
        are over the predicted times, see `run_in_sequence`. A profile without launches counts each
        kernel once; idle time between kernels is no part of it.
        Raises InputError outside the grid's range.

        Example:
            at_1200 = predictions.whole_run([HardwareConfig(132, 1200, 2619)])
            print(at_1200["time_factor"])
        """
        targets = self._with_points(targets)
        configs, marks = self._targets(targets)
        each = self.columns(targets)
        run: dict[str, Column] = {
            axis: np.array([getattr(config, axis) for config in configs]) for axis in AXES
        }
        launches = self.profiles.weights

        def of_kernels(name: str) -> Floats:
            return np.asarray(each[name]).reshape(len(launches), len(configs))

        time_ms = of_kernels("time_ms")
        for end in ("", "_low", "_high"):
            run[f"time_ms{end}"], _ = run_in_sequence(of_kernels(f"time_ms{end}"), None, launches)
            _, run[f"power_w{end}"] = run_in_sequence(
                time_ms, of_kernels(f"power_w{end}"), launches
            )
        at_base_ms = self.profiles.run_times_ms
        run["time_factor"] = run["time_ms"] / at_base_ms.sum()
        power_w = self.profiles.quantity("power") if "power" in self.surfaces else np.nan
        run["power_factor"] = run["power_w"] * at_base_ms.sum() / (at_base_ms * power_w).sum()
        run["energy_mj"] = run["time_ms"] * run["power_w"]
        is_above = self._is_above_limit(each).reshape(len(launches), -1)
        measured = self._measured_marks(configs)
        for target, own in enumerate(marks):
            of_all = {measured.get(k * len(marks) + target, own) for k in range(len(launches))}
            marks[target] = of_all.pop() if len(of_all) == 1 else own
        flags = [
            "; ".join((*([ABOVE_LIMIT] if is_above[:, target].any() else ()), *mark))
            for target, mark in enumerate(marks)
        ]
        run["flags"] = np.array(flags, dtype=object)
        return run

    def rows(self, targets: Targets | None = None) -> list[dict[str, Any]]:
        """Return the same table row by row, for JSON: None where `columns` has NaN, flags as lists.

        Slow for many kernels. Raises InputError outside the grid's range.
        """
        targets = self._with_points(targets)
        configs, marks = self._targets(targets)
        table = self.columns(targets)
        columns = {
            name: [None] * len(column)
            if column.dtype.kind == "f" and np.isnan(column).all()
            else column.tolist()
            for name, column in table.items()
        }
        each = [[*mark, *flags] for flags in self.flags for mark in marks]
        for row, mark in self._measured_marks(configs).items():
            each[row] = [*mark, *self.flags[row // len(marks)]]
        for row in np.flatnonzero(self._is_above_limit(table)).tolist():
            each[row].insert(0, ABOVE_LIMIT)
        columns["flags"] = each
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @extra_named("'to_frame'")
    def to_frame(self, targets: Targets | None = None) -> "pd.DataFrame":
        """Return `columns` as a pandas DataFrame. Raises InputError outside the grid's range."""
        import pandas as pd

        return pd.DataFrame(self.columns(targets))

    def _targets(self, targets: Targets | None) -> tuple[list[HardwareConfig], list[Marks]]:
        """Return each row's configuration, and its flags, whatever the kernel."""
        configs = list(self.grid if targets is None else targets)
        return configs, [(*self._between(c), *self._beyond(c)) for c in configs]

    def _with_points(self, targets: Targets | None) -> Targets | None:
        """The targets; where none are named, the further points between steps beside the grid."""
        between = [at.config for at in self.profiles.points if at.config not in self.grid]
        return [*self.grid, *between] if targets is None and between else targets

    def _put_measured(self, table: dict[str, Column], configs: Sequence[HardwareConfig]) -> None:
        """Put what was measured between two steps in place; on the grid it is already."""
        for quantity, surfaces in self.surfaces.items():
            names = [QUANTITIES[quantity]]
            names += [f"{names[0]}_{end}" for end in ("low", "high") if surfaces.low is not None]
            for config, factors in self.profiles.measured_factors(quantity):
                known = np.flatnonzero(np.isfinite(factors))
                places = [t for t, own in enumerate(configs) if own == config not in self.grid]
                for rows in (known * len(configs) + place for place in places):
                    table[f"{quantity}_factor"][rows] = factors[known]
                    for name in names:
                        table[name][rows] = (factors * self.profiles.quantity(quantity))[known]

    def _measured_marks(self, configs: Sequence[HardwareConfig]) -> dict[int, Marks]:
        """By row that it was measured, and its other marks."""
        if not self.profiles.points:
            return {}
        is_measured = {q: np.zeros((len(self.flags), len(configs)), dtype=bool) for q in QUANTITIES}
        for quantity, of in is_measured.items():
            for config, factors in self.profiles.measured_factors(quantity):
                of[:, [own == config for own in configs]] |= np.isfinite(factors)[:, None]
        marks = {}
        for k, target in np.argwhere(is_measured["time"]).tolist():
            whole = "power" not in self.surfaces or is_measured["power"][k, target]
            mark = MEASURED if whole else TIME_MEASURED
            marks[k * len(configs) + target] = (mark, *self._beyond(configs[target]))
        return marks

    def _between(self, config: HardwareConfig) -> Marks:
        return () if config in self.grid else (INTERPOLATED,)

    def _beyond(self, config: HardwareConfig) -> Marks:
        is_inside = self.trained_range is None or self.trained_range.spans(config)
        return () if is_inside else (EXTRAPOLATED,)

    def _is_above_limit(self, table: dict[str, Column]) -> Mask:
        return ~self.supply.suffices(table["power_w"])

    def _high_ends(self, targets: Targets | None) -> dict[str, Floats]:
        """Return the high ends (K, T) that there are, as the board's limit leaves them."""
        highs = {q: of.high for q, of in self._held.items() if of.high is not None}
        if targets is None or not highs:
            return {quantity: high.reshape(len(high), -1) for quantity, high in highs.items()}
        at_each = [self._high_at(config) for config in targets]
        return {
            quantity: np.array([high[quantity] for high in at_each]).reshape(-1, len(of)).T
            for quantity, of in highs.items()
        }

    def _high_at(self, config: HardwareConfig) -> dict[str, Floats]:
        """Those at one target (K,); between steps they are held there, not interpolated."""
        index, held = (0, -1, 0), self._held
        if config in self.grid:
            index = self.grid.index(config)
        else:
            lower = (mhz for mhz in self.grid.engine_mhz if mhz < config.engine_mhz)
            clocks = (*lower, config.engine_mhz)
            below = ConfigGrid((config.cu_count,), clocks, (config.memory_mhz,))
            held = self._hold({q: by_power_laws(of, below) for q, of in self.surfaces.items()})
        return {q: of.high[:, *index] for q, of in held.items() if of.high is not None}

    @cached_property
    def _held(self) -> dict[str, Surfaces]:
        """Absolute surfaces whose high ends are of what the board supplies."""
        return self._hold(self.surfaces)

    def _hold(self, surfaces: dict[str, Surfaces]) -> dict[str, Surfaces]:
        absolute = {q: of.absolute(self.profiles.quantity(q)) for q, of in surfaces.items()}
        return with_held_ends(absolute, self.supply)

    def _at(self, values: Floats, targets: Targets | None) -> Floats:
        """Return factors (K, T) at the targets, by default everywhere on the grid."""
        if targets is None:
            return values.reshape(len(values), -1)
        factors = [interpolate(values, self.grid, config)[0] for config in targets]
        return np.array(factors).reshape(len(factors), len(values)).T
