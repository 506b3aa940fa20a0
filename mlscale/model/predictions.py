"""Predictions: the surfaces of profiled kernels, and the absolute numbers that follow from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Mask
from mlscale.data.checks import check_named_clocks
from mlscale.data.devices import find_device
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, settings_of
from mlscale.data.profiles import QUANTITIES, Profiles
from mlscale.data.supply import Supply, supply_of_run, with_held_ends
from mlscale.data.surfaces import (
    Surfaces,
    absolute_values,
    by_power_laws,
    configuration_weights,
    interpolate,
    run_in_sequence,
)
from mlscale.errors import InputError, extra_named
from mlscale.guesses import SAVED_PLOT, Guided, instead, no_such, written
from mlscale.notes import Note
from mlscale.text import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
COVERAGE = 0.9  # that the intervals have which `mlscale predict` prints
NORMAL_SCORE = 1.6448536  # standard deviations from the mean, which so many normal errors keep
INTERPOLATED, EXTRAPOLATED = "interpolated", "extrapolated"
_LABELS = {"time [ms]": "time_ms", "power [W]": "power_w", "energy [mJ]": "energy_mj"}  # in a plot
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


def with_own_ends(surfaces: Mapping[str, Surfaces], known: Surfaces, rows: Mask) -> Surfaces | None:
    """Energy as time x power, with the ends that are known of it; None without intervals.

    known: of some kernels, rows (K,). No end is further out than that of time x power, which the
    energy of the other kernels has.
    """
    time, power = surfaces["time"], surfaces["power"]
    if time.low is None or time.high is None or power.low is None or power.high is None:
        return None
    if known.low is None or known.high is None:
        return None
    values = time.values * power.values  # noqa: PD011 (no DataFrame)
    low, high = time.low * power.low, time.high * power.high
    low[rows], high[rows] = np.maximum(low[rows], known.low), np.minimum(high[rows], known.high)
    low, high = np.minimum(low, values), np.maximum(high, values)
    return replace(time, values=values, flags=(), low=low, high=high)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Guided, Mapping[str, Surfaces]):
    """What a model predicts for K profiled kernels; `predictions['time']` gives the `Surfaces`.

    surfaces: by quantity, 'time' and, where model and profiles have it, 'power'. coverage: of
    their intervals, None without. energy: relative too, where it has intervals of its own; None
    where the ends of time x power are all that is known. warnings: what a reader should know of all
    of them.
    trained_range: the settings that training speaks for, where the grid goes beyond; else None.
    run_drawn_w: the most that any kernel of the run was measured to draw, where these are only
    some of them [W]; 0 where that is not known. unmeasured: configurations of the grid that no
    training kernel was measured at; they are given where they are asked for alone. asked: where
    the tables are of, if they name no targets; None for everywhere.
    """

    profiles: Profiles
    surfaces: dict[str, Surfaces]
    coverage: float | None = None
    energy: Surfaces | None = None
    warnings: tuple[Note, ...] = ()
    trained_range: ConfigGrid | None = None
    run_drawn_w: float = 0.0
    unmeasured: frozenset[HardwareConfig] = frozenset()
    asked: tuple[HardwareConfig, ...] | None = None

    def __repr__(self) -> str:
        where = self.grid.text if self.asked is None else f"at {'; '.join(map(str, self.asked))}"
        return (
            f"<Predictions of {' and '.join(self.surfaces)}: "
            f"{counted(len(self.profiles.kernels), 'kernel')} on '{self.device}', {where}>"
        )

    def __getitem__(self, quantity: str) -> Surfaces:
        if quantity not in self.surfaces:
            raise KeyError(no_such("Predictions", quantity, self.surfaces))
        return self.surfaces[quantity]

    def __iter__(self) -> Iterator[str]:
        return iter(self.surfaces)

    def __len__(self) -> int:
        return len(self.surfaces)

    @property
    def grid(self) -> ConfigGrid:
        """The grid that the surfaces are on."""
        return next(iter(self.surfaces.values())).grid

    @property
    def base(self) -> HardwareConfig:
        """The configuration that the factors are relative to."""
        return self.profiles.base

    @property
    def device(self) -> str:
        """The GPU of the kernels."""
        return self.profiles.device

    @cached_property
    def flags(self) -> tuple[tuple[Note, ...], ...]:
        """For each kernel what its predictions rest on, each flag once."""
        by_kernel = zip(*(surfaces.flags for surfaces in self.surfaces.values()), strict=True)
        return tuple(tuple(dict.fromkeys(sum(flags, ()))) for flags in by_kernel)

    @cached_property
    def supply(self) -> Supply:
        """What the board supplies."""
        return supply_of_run(self.profiles, run_drawn_w=self.run_drawn_w)

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

        targets: by default every configuration of the grid that training kernels were measured at,
        and the further points; between two of the grid's steps a prediction is interpolated, beyond
        the trained range extrapolated, and flagged so, as is power that the board cannot supply. At
        a further point stands what was measured, with a flag. Where only the interval is above what
        the board supplies, it ends as `with_held_ends` says. What cannot be given is NaN; the flags
        of a row are joined by '; '.
        Raises InputError outside the grid's range.
        """
        table = self._numbers(targets)
        flags = ["; ".join(flags) for flags in self._row_flags(targets, table["power_w"])]
        table["flags"] = np.array(flags, dtype=object)
        return table

    def rows(self, targets: Targets | None = None) -> list[dict[str, Any]]:
        """Return the same table row by row, for JSON: None where `columns` has NaN, flags as lists.

        Slow for many kernels. Raises InputError outside the grid's range.
        """
        table = self._numbers(targets)
        columns: dict[str, list[Any]] = {
            name: [None if value != value else value for value in column.tolist()]  # noqa: PLR0124
            for name, column in table.items()
        }
        columns["flags"] = [list(flags) for flags in self._row_flags(targets, table["power_w"])]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @extra_named("'to_frame'")
    def to_frame(self, targets: Targets | None = None) -> "pd.DataFrame":
        """Return `columns` as a pandas DataFrame. Raises InputError outside the grid's range."""
        import pandas as pd

        return pd.DataFrame(self.columns(targets))

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each kernel and setting that was asked for, as a pandas DataFrame."""
        return self.to_frame()

    def at(self, **settings: float | Sequence[float]) -> "Predictions":
        """These predictions at some settings alone; what is left out is as at the base.

        settings: cu_count, engine_mhz, memory_mhz, a number or several each. Raises InputError
        outside the grid's range.

        Example:
            predictions.at(engine_mhz=[1200, 1400]).frame
        """
        return self.asked_at(settings)

    def asked_at(self, at: Any, **wrong: Any) -> "Predictions":
        """These predictions at the settings alone that `settings_of` reads. Raises InputError.

        wrong: keywords that there are not.
        """
        for name in wrong:
            raise InputError(f"predict has no '{name}'{instead('predict', name)}")
        base = self.base.as_document()
        settings = settings_of(at, self.base.cu_axis or "cu")
        asked = [HardwareConfig(**{**base, **setting}) for setting in settings]
        for config in asked:
            check_named_clocks(find_device(self.device), config.as_dict(), self.grid)
            configuration_weights(self.grid, config)  # refuses what is outside
        return replace(self, asked=tuple(asked))

    @written(SAVED_PLOT)
    def plot(self) -> "Figure":
        """The whole run over the axis of most settings: a panel for time, power and energy each.

        Needs matplotlib; returns its figure.
        """
        from mlscale.model.plots import draw_curves

        run = self.whole_run()
        axis = max(AXES, key=lambda one: len(set(run[one].tolist())))
        others = [one for one in AXES if one != axis]
        here = np.all([run[one] == getattr(self.base, one) for one in others], axis=0)
        here = here if here.any() else np.ones(len(here), dtype=bool)
        ends = {"values": "", "low": "_low", "high": "_high"}
        panels: dict[str, dict[str, Column]] = {}
        for label, name in _LABELS.items():
            sides = {side: run[name + end] for side, end in ends.items() if name + end in run}
            known = {side: c[here] for side, c in sides.items() if np.isfinite(c).any()}
            panels |= {label: known} if known else {}
        return draw_curves(f"{self.device}, base {self.base}", axis, run[axis][here], panels)

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
        configs = self._configs(targets)
        launches, at_base_ms = self.profiles.weights, self.profiles.run_times_ms
        each = {
            name: column.reshape(len(launches), len(configs))
            for name, column in self._numbers(targets).items()
        }
        run: dict[str, Column] = {axis: each[axis][0] for axis in AXES}
        for end in ("", "_low", "_high"):
            run[f"time_ms{end}"], _ = run_in_sequence(each[f"time_ms{end}"], None, launches)
            power_w = each[f"power_w{end}"]
            _, run[f"power_w{end}"] = run_in_sequence(each["time_ms"], power_w, launches)
        run["time_factor"] = run["time_ms"] / at_base_ms.sum()
        base_w = self.profiles.quantity("power") if "power" in self.surfaces else np.nan
        run["power_factor"] = run["power_w"] * at_base_ms.sum() / (at_base_ms * base_w).sum()
        run["energy_mj"] = run["time_ms"] * run["power_w"]
        above_limit = np.any(~self.supply.suffices(each["power_w"]), axis=0).tolist()
        run["flags"] = np.array(self._run_flags(configs, above_limit), dtype=object)
        return run

    def _configs(self, targets: Targets | None) -> list[HardwareConfig]:
        """The targets; where none are named, what was trained, and the further points beside it."""
        targets = self.asked if targets is None else targets
        if targets is not None:
            return list(targets)
        points = [point.config for point in self.profiles.points]
        trained = [config for config in self.grid if config not in self.unmeasured]
        return [*trained, *(config for config in points if config not in trained)]

    def _numbers(self, targets: Targets | None) -> dict[str, Column]:
        """`columns` without flags."""
        configs = self._configs(targets)
        kernels, count = len(self.profiles.kernels), len(configs)
        nothing = np.full(kernels * count, np.nan)
        table: dict[str, Column] = dict.fromkeys(COLUMNS[:-1], nothing)
        table["kernel"] = np.repeat(np.array(self.profiles.kernels, dtype=object), count)
        for axis in AXES:
            table[axis] = np.tile([getattr(config, axis) for config in configs], kernels)
        for quantity, surfaces in self.surfaces.items():
            name, at_base = QUANTITIES[quantity], self.profiles.quantity(quantity)
            measured = self._measured(quantity, configs)
            is_measured = np.isfinite(measured)
            factors = np.where(is_measured, measured, self._at(surfaces.values, configs))
            table[f"{quantity}_factor"] = factors.ravel()
            table[name] = absolute_values(factors, at_base).ravel()
            if surfaces.low is not None:
                low = np.where(is_measured, measured, self._at(surfaces.low, configs))
                table[f"{name}_low"] = absolute_values(low, at_base).ravel()
            if surfaces.high is not None:
                measured_high = absolute_values(measured, at_base)
                high = np.where(is_measured, measured_high, self._highs(quantity, configs))
                table[f"{name}_high"] = high.ravel()
        table["energy_mj"] = table["time_ms"] * table["power_w"]
        return table

    def _row_flags(self, targets: Targets | None, power_w: Floats) -> list[Marks]:
        """Of each row, of this power [W], the flags."""
        flags: list[Marks] = []
        marks = self._marks(self._configs(targets))
        for target_marks, kernel_flags in zip(marks, self.flags, strict=True):
            told = (*map(str, kernel_flags),)
            flags += [(*mark, *told) for mark in target_marks] if told else target_marks
        for row in np.flatnonzero(~self.supply.suffices(power_w)):
            flags[row] = (ABOVE_LIMIT, *flags[row])
        return flags

    def _run_flags(
        self, configs: Sequence[HardwareConfig], above_limit: Iterable[bool]
    ) -> list[str]:
        """Of each target (T,) the flags of the whole run: a mark that all kernels share."""
        flags = []
        by_target = zip(*self._marks(configs), strict=True)
        for marks, plain, is_above in zip(
            by_target, self._plain_marks(configs), above_limit, strict=True
        ):
            shared = marks[0] if len(set(marks)) == 1 else plain
            flags.append("; ".join((ABOVE_LIMIT, *shared) if is_above else shared))
        return flags

    def _marks(self, configs: Sequence[HardwareConfig]) -> list[list[Marks]]:
        """What the rows of each kernel and target are, beside predictions on the grid."""
        plain = self._plain_marks(configs)
        marks = [plain.copy() for _ in self.profiles.kernels]
        has_time, has_power = (np.isfinite(self._measured(q, configs)) for q in QUANTITIES)
        if "power" not in self.surfaces:
            has_power = has_time
        for k, target in np.argwhere(has_time):
            mark = MEASURED if has_power[k, target] else TIME_MEASURED
            marks[k][target] = (mark, *(other for other in plain[target] if other != INTERPOLATED))
        return marks

    def _plain_marks(self, configs: Sequence[HardwareConfig]) -> list[Marks]:
        """Of each target, whatever the kernel, whether it is between steps or beyond training."""
        trained = self.trained_range
        return [
            (
                *(() if config in self.grid and config not in self.unmeasured else (INTERPOLATED,)),
                *(() if trained is None or trained.spans(config) else (EXTRAPOLATED,)),
            )
            for config in configs
        ]

    def _measured(self, quantity: str, configs: Sequence[HardwareConfig]) -> Floats:
        """Factors that were measured at further points (K, T), NaN elsewhere."""
        measured = np.full((len(self.profiles.kernels), len(configs)), np.nan)
        for config, factors in self.profiles.measured_factors(quantity):
            for target, asked in enumerate(configs):
                if asked == config:
                    measured[:, target] = np.where(np.isnan(factors), measured[:, target], factors)
        return measured

    def _at(self, values: Floats, configs: Sequence[HardwareConfig]) -> Floats:
        """Return factors (K, T) at the targets."""
        factors = [interpolate(values, self.grid, config)[0] for config in configs]
        return np.array(factors).reshape(len(configs), len(values)).T

    def _highs(self, quantity: str, configs: Sequence[HardwareConfig]) -> Floats:
        """Return the high ends (K, T), absolute, as the board's limit leaves them.

        Between two steps they are held there, not interpolated.
        """
        ends = np.empty((len(self.profiles.kernels), len(configs)))
        for target, config in enumerate(configs):
            held, index = self._held, (0, -1, 0)
            if config in self.grid:
                index = self.grid.index(config)
            else:
                lower = (mhz for mhz in self.grid.engine_mhz if mhz < config.engine_mhz)
                clocks = (*lower, config.engine_mhz)
                below = ConfigGrid((config.cu_count,), clocks, (config.memory_mhz,))
                held = self._hold({q: by_power_laws(factors, below) for q, factors in self.items()})
            ends[:, target] = held[quantity].high[:, *index]  # type: ignore[index]
        return ends

    @cached_property
    def _held(self) -> dict[str, Surfaces]:
        """Absolute surfaces whose high ends are of what the board supplies."""
        return self._hold(self.surfaces)

    def _hold(self, surfaces: dict[str, Surfaces]) -> dict[str, Surfaces]:
        in_units = {
            quantity: factors.absolute(self.profiles.quantity(quantity))
            for quantity, factors in surfaces.items()
        }
        return with_held_ends(in_units, self.supply)
