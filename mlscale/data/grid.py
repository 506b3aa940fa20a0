"""Hardware configurations and the grid they form: cu_count x engine_mhz x memory_mhz."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats
from mlscale.errors import InputError
from mlscale.quantities import number_and_unit, quantity
from mlscale.text import counted

AXES = ("cu_count", "engine_mhz", "memory_mhz")
BASE_NAMES = ("mid", "highest")
ENDS = ("lowest", "highest")
MOST_CONFIGURATIONS = 1_000_000  # more in a grid are no GPU's
SHORT_NAMES = {"cu_count": "cu", "engine_mhz": "engine", "memory_mhz": "memory"}
_ALIASES = {
    **{short: axis for axis, short in SHORT_NAMES.items()},
    **dict.fromkeys(("sm", "core", "gpu", "graphics"), "engine_mhz"),
    "mem": "memory_mhz",
    **dict.fromkeys(("cus", "sms", "cu_count"), "cu_count"),
}

Index = tuple[int, int, int]


@dataclass(frozen=True, order=True)
class HardwareConfig:
    """One setting of the hardware: the number of compute units, engine and memory clock [MHz].

    cu_axis: the name of the first axis, if it is not compute units.

    Example:
        config = mlscale.HardwareConfig(cu_count=16, engine_mhz=800, memory_mhz=700)
    """

    cu_count: int
    engine_mhz: float
    memory_mhz: float
    cu_axis: str = field(default="", compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for axis in AXES:
            object.__setattr__(self, axis, _plain(getattr(self, axis)))

    def __str__(self) -> str:
        cu = self.cu_axis or "cu"
        return f"{cu}={self.cu_count},engine={self.engine_mhz:g},memory={self.memory_mhz:g}"

    def as_dict(self) -> dict[str, float]:
        """Return the three settings by name, as JSON output carries them."""
        return {axis: getattr(self, axis) for axis in AXES}

    def as_document(self) -> dict[str, Any]:
        """Return `as_dict`, with cu_axis if there is one: the arguments of its class."""
        return {**self.as_dict(), **({"cu_axis": self.cu_axis} if self.cu_axis else {})}


Base = HardwareConfig | Mapping[str, float] | Sequence[int] | str


@dataclass(frozen=True)
class ConfigGrid:
    """All configurations of a data set: three axes, each strictly increasing, length 1 allowed.

    Indices (c, e, m) count along cu_count, engine_mhz [MHz] and memory_mhz [MHz]. cu_axis: as of
    its configurations.
    """

    cu_count: tuple[int, ...]
    engine_mhz: tuple[float, ...]
    memory_mhz: tuple[float, ...]
    cu_axis: str = field(default="", compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for axis in AXES:
            steps = tuple(map(_plain, getattr(self, axis)))
            object.__setattr__(self, axis, steps)
            if not steps:
                raise InputError(f"the grid has no {axis}")
            if not all(low < high for low, high in itertools.pairwise((0, *steps, math.inf))):
                raise InputError(
                    f"the grid's {axis} must be positive and rise from step to step, not {steps}"
                )
        if self.size > MOST_CONFIGURATIONS:
            raise InputError(f"the grid has {self.text}; at most {MOST_CONFIGURATIONS} in all")

    @classmethod
    def spanning(cls, configs: Iterable[HardwareConfig]) -> "ConfigGrid":
        """Make the smallest grid that contains every given configuration."""
        axes = zip(*((c.cu_count, c.engine_mhz, c.memory_mhz) for c in configs), strict=True)
        return cls(*(tuple(sorted(set(steps))) for steps in axes))

    @property
    def steps(self) -> dict[str, tuple[float, ...]]:
        """The steps of each axis, by its name."""
        return {axis: getattr(self, axis) for axis in AXES}

    @property
    def shape(self) -> Index:
        """The lengths of the axes, (C, E, M)."""
        return len(self.cu_count), len(self.engine_mhz), len(self.memory_mhz)

    @property
    def size(self) -> int:
        """The number of configurations, N."""
        return math.prod(self.shape)

    @property
    def text(self) -> str:
        """The shape for a reader: '8 CU counts x 8 engine clocks x 7 memory clocks'."""
        cus = f"{self.cu_axis} step" if self.cu_axis else "CU count"
        return " x ".join(map(counted, self.shape, (cus, "engine clock", "memory clock")))

    @property
    def bounds(self) -> str:
        """The lowest and highest settings for a reader: 'cu 16 to 16, engine 500 to 1000, …'."""
        names = {**SHORT_NAMES, "cu_count": self.cu_axis or "cu"}
        return ", ".join(
            f"{names[axis]} {steps[0]:g} to {steps[-1]:g}" for axis, steps in self.steps.items()
        )

    @property
    def mid(self) -> HardwareConfig:
        """The mid-grid configuration: index length // 2 of each axis."""
        c, e, m = (length // 2 for length in self.shape)
        return self.config((c, e, m))

    @property
    def highest(self) -> HardwareConfig:
        """The configuration with every axis at its highest step."""
        return self.config([length - 1 for length in self.shape])

    def config(self, at: Base) -> HardwareConfig:
        """Return a configuration of the grid, given by itself, its index (c, e, m) or as text.

        Or as a mapping, {'engine': 1200}. Raises InputError if the grid does not have it.
        """
        if isinstance(at, Mapping):
            at = ",".join(f"{name}={value}" for name, value in at.items())
        config = self.parse(at) if isinstance(at, str) else at
        if isinstance(config, HardwareConfig):
            for axis, steps in self.steps.items():
                setting = getattr(config, axis)
                if setting not in steps:
                    raise InputError(
                        f"{axis} {setting:g} is not on the grid; it has {format_steps(steps)}"
                    )
            return config
        try:
            c, e, m = map(int, config)
        except (TypeError, ValueError):
            raise InputError(
                f"{config} is not a configuration; write {{'engine': 1200}}, 'engine=1200', 'mid', "
                "'highest', a HardwareConfig or its index (c, e, m)"
            ) from None
        if any(not 0 <= i < n for i, n in zip((c, e, m), self.shape, strict=True)):
            raise InputError(
                f"the grid is {self.shape}, it has no index {(c, e, m)}; if these are settings, "
                "give a HardwareConfig of them"
            )
        settings = self.cu_count[c], self.engine_mhz[e], self.memory_mhz[m]
        return HardwareConfig(*settings, cu_axis=self.cu_axis)

    def __iter__(self) -> Iterator[HardwareConfig]:
        """Every configuration, in the order of a raveled (C, E, M) array."""
        for settings in itertools.product(self.cu_count, self.engine_mhz, self.memory_mhz):
            yield HardwareConfig(*settings, cu_axis=self.cu_axis)

    def __contains__(self, config: HardwareConfig) -> bool:
        """Tell whether a configuration is one of the grid's."""
        return all(getattr(config, axis) in steps for axis, steps in self.steps.items())

    def settings(self) -> dict[str, NDArray[Any]]:
        """Return every configuration's settings by axis, (N,) each, in the order of iteration."""
        mesh = np.meshgrid(*self.steps.values(), indexing="ij")
        return {axis: settings.ravel() for axis, settings in zip(AXES, mesh, strict=True)}

    def index(self, at: Base) -> Index:
        """Return the index (c, e, m) on the grid of a configuration, given as for `config`.

        Raises InputError if it is not one of the grid's points.
        """
        config = self.config(at)
        c, e, m = (steps.index(getattr(config, axis)) for axis, steps in self.steps.items())
        return c, e, m

    def position(self, at: Base) -> int:
        """Return the position of a configuration in a raveled (C, E, M) array; see `index`."""
        return int(np.ravel_multi_index(self.index(at), self.shape))

    def spans(self, config: HardwareConfig) -> bool:
        """Tell whether a configuration lies on or between the grid's steps."""
        return all(
            steps[0] <= getattr(config, axis) <= steps[-1] for axis, steps in self.steps.items()
        )

    def parse(self, text: str, usual: HardwareConfig | None = None) -> HardwareConfig:
        """Read 'cu=16,engine=800,memory=700', 'mid' or 'highest' (every axis at its top).

        An omitted axis is as in `usual`; without it, only an axis of length 1 may be omitted.
        The configuration need not be one of the grid's points. Raises InputError.
        """
        if text in BASE_NAMES:
            return self.mid if text == "mid" else self.highest
        settings = parse_settings(text, self.cu_axis or "cu")
        for axis, steps in self.steps.items():
            if axis not in settings:
                if len(steps) > 1 and usual is None:
                    raise InputError(f"'{text}' gives no {axis}; one of {format_steps(steps)}")
                settings[axis] = getattr(usual, axis) if usual else steps[0]
        cu_count = int(settings.pop("cu_count"))
        return HardwareConfig(cu_count, **settings, cu_axis=self.cu_axis)


def _plain(number: float) -> float:
    """A NumPy number as Python's own, so that it prints and goes into JSON like any other."""
    return number.item() if isinstance(number, np.generic) else number


def axis_named(name: str) -> str | None:
    """The axis of a setting's name, such as 'engine', 'sm_clock' or 'mem'; None for others."""
    short = name.strip().casefold().removesuffix("_clock").removesuffix("_mhz")
    return _ALIASES.get(short)


def parse_settings(text: str, cu_axis: str = "cu") -> dict[str, float]:
    """Read 'cu=16,engine=1.2GHz' into {axis: value}. Raises InputError on anything else.

    cu_axis: another name of the first axis.
    """
    settings: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = map(str.strip, part.partition("="))
        axis = "cu_count" if name == cu_axis else axis_named(name)
        if not equals and number_and_unit(name):
            raise InputError(f"{name} of what? Write engine={name} or memory={name}")
        if not equals or axis is None:
            raise InputError(
                f"'{name}' is not a setting; use {cu_axis}, engine or memory, such as engine=1200"
            )
        if axis in settings:
            raise InputError(f"'{text}' has {axis} twice")
        try:
            settings[axis] = quantity(value, "" if axis == "cu_count" else "MHz")
        except InputError as error:
            raise InputError(f"'{text}': {error}") from None
        if not (math.isfinite(settings[axis]) and settings[axis] > 0):
            raise InputError(f"'{value}' in '{text}' must be positive and finite")
        if axis == "cu_count" and settings[axis] != int(settings[axis]):
            raise InputError(f"'{value}' in '{text}' must be a whole number of compute units")
    return settings


def settings_of(at: Any, cu_axis: str = "cu") -> list[dict[str, float]]:
    """The configurations a Python user gives, each as {axis: value} of the axes named.

    at: a configuration, a text such as 'engine=1200', a mapping such as {'engine': 1200} or
    {'engine_mhz': [1200, 1400]}, or several of these. Raises InputError.

    Example:
        >>> settings_of({"engine": [1200, 1400], "cu": 8})
        [{'engine_mhz': 1200.0, 'cu_count': 8.0}, {'engine_mhz': 1400.0, 'cu_count': 8.0}]
    """
    if isinstance(at, HardwareConfig):
        return [at.as_dict()]
    if isinstance(at, str):
        return [parse_settings(at, cu_axis)]
    if isinstance(at, Mapping):
        steps = [[value] if np.isscalar(value) else value for value in at.values()]
        pairs = [zip(at, values, strict=True) for values in itertools.product(*steps)]
        return [parse_settings(",".join(f"{n}={v}" for n, v in each), cu_axis) for each in pairs]
    if isinstance(at, Iterable):
        return [settings for one in at for settings in settings_of(one, cu_axis)]
    raise InputError(f"{at} of what? Write {{'engine': {at}}}")


def setting_of(at: Any) -> dict[str, float]:
    """The only one of `settings_of`. Raises InputError of several, and of none."""
    settings = settings_of(at)
    if len(settings) != 1:
        raise InputError(f"{at} is {len(settings)} settings; the base is one: {{'engine': 1200}}")
    return settings[0]


def config_of(at: Any) -> HardwareConfig:
    """The configuration of all axes that a Python user gives, see `settings_of`. InputError."""
    if isinstance(at, HardwareConfig):
        return at
    settings = setting_of(at)
    if lacking := [axis for axis in AXES if axis not in settings]:
        raise InputError(f"the base {at} gives no {' and no '.join(lacking)}")
    return HardwareConfig(int(settings["cu_count"]), settings["engine_mhz"], settings["memory_mhz"])


def step_weights(
    steps: Sequence[float] | Floats, to: Sequence[float] | Floats, going_on: Sequence[str] = ()
) -> Floats:
    """Return weights (T, S) of an axis' S steps in the values at T settings, linear in logarithms.

    Beyond the first and the last step the value there stays, but at the ends in `going_on` (of
    ENDS), where it goes on as between the two outermost steps.
    """
    known, wanted = np.log(np.array(steps, float)), np.log(np.array(to, float))
    if len(known) == 1:
        return np.ones((len(wanted), 1))
    least = -np.inf if "lowest" in going_on else known[0]
    most = np.inf if "highest" in going_on else known[-1]
    wanted = np.clip(wanted, least, most)
    lower = np.clip(np.searchsorted(known, wanted, side="right") - 1, 0, len(known) - 2)
    share = (wanted - known[lower]) / (known[lower + 1] - known[lower])
    weights, rows = np.zeros((len(wanted), len(known))), np.arange(len(wanted))
    weights[rows, lower] = 1 - share
    weights[rows, lower + 1] = share
    return weights


def format_steps(steps: tuple[float, ...]) -> str:
    """Write the steps of an axis for a reader: '4, 8, 16'."""
    return ", ".join(f"{step:g}" for step in steps)


def grid_state(grid: ConfigGrid, base: HardwareConfig) -> dict[str, Any]:
    """Describe grid and base in JSON values: the three axes, and the index of the base."""
    steps = {axis: list(steps) for axis, steps in grid.steps.items()}
    named = {"cu_axis": grid.cu_axis} if grid.cu_axis else {}
    return {**steps, "base": list(grid.index(base)), **named}


def restore_grid(state: dict[str, Any]) -> tuple[ConfigGrid, HardwareConfig]:
    """Make grid and base from what `grid_state` gave; KeyError or ValueError if it is damaged."""
    grid = ConfigGrid(
        tuple(int(step) for step in state["cu_count"]),
        tuple(float(step) for step in state["engine_mhz"]),
        tuple(float(step) for step in state["memory_mhz"]),
        cu_axis=str(state.get("cu_axis", "")),
    )
    c, e, m = (int(index) for index in state["base"])
    return grid, grid.config((c, e, m))
