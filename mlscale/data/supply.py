"""What power a board can supply, and the intervals of a run on one that supplies no more.

It supplies up to its limits, or what it was measured to draw.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.devices import known_device
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.notes import Note
from mlscale.parameters import parameter

MOST_SUPPLIED = "the highest power limit known of the board, or the most it was measured to draw"
ROUNDING = 1e-9  # relative excess of power that is none
AS_MEASURED = 0.02  # so nearly predictions meet a power that was measured
# Of a limit: a GPU that it holds draws 97 to 100 % in the mean; of trainings on an A40, a V100 and
# an RTX 6000 that did, three of four were slower by 6 % or more than under the highest limit.
HELD = 0.97
NOT_KEPT = 1.03  # times its limit: a run that draws more does not keep it
WITHIN = f"up to {100 * AS_MEASURED:g} % above what was measured counts as within it"


@dataclass(frozen=True)
class Supply:
    """What a board supplies [W]; if work would need more, the GPU lowers its clock.

    All of it is of the hottest board; powers are those of a run, of `gpu_count` boards side by
    side, whose hottest draws `hottest_gpu_ratio` of their mean, see `Profiles`.

    most_w: its highest power limit, or more where it was measured to draw more. default_w: the
    limit that it is set to unless somebody changed it, likewise. Both are infinite where that is
    not known. drawn_w: the most that it was measured to draw, 0 where that is not known; a
    prediction may be 2 % above it, which is possible where it was measured, though a limit be
    between the two. cap_w: the limit that the run had, NaN where no file states it; the board then
    supplies no more than that, or than what was drawn of it where it held the run; a limit that the
    run did not keep bounds nothing. least_w: what it drew in the reading of least power, of several
    kernels the one of most; NaN of one reading.
    """

    most_w: float = math.inf
    default_w: float = math.inf
    drawn_w: float = 0.0
    cap_w: float = math.nan
    gpu_count: int = 1
    hottest_gpu_ratio: float = 1.0
    least_w: float = field(default=math.nan, compare=False)

    @property
    def boards(self) -> float:
        """A run's power over that of its hottest board."""
        return self.gpu_count / self.hottest_gpu_ratio

    @property
    def holds(self) -> bool:
        """Whether the run's limit held it, so that its clock was the limit's."""
        return is_at_limit(self.drawn_w, self.cap_w)

    @property
    def is_bound(self) -> bool:
        """Whether the run's limit is known and was kept."""
        return self.drawn_w <= NOT_KEPT * self.cap_w

    @property
    def most_of_run_w(self) -> float:
        """The most that all boards of a run supply together."""
        return self.most_w * self.boards

    @property
    def most_in_words(self) -> str:
        """The highest power that counts as supplied, in words."""
        if self.holds:
            return f"{self.most_w:.0f} W, which the run drew of its power limit of {self.cap_w:g} W"
        if self.is_bound:
            return f"{self.cap_w:g} W, the power limit that the run had"
        with_slack = f"; {WITHIN}" if self.drawn_w * (1 + AS_MEASURED) > self.most_w else ""
        return f"{self.most_w:g} W, {MOST_SUPPLIED}{with_slack}"

    def suffices(self, power_w: Floats) -> Mask:
        """Whether a power (...) [W] can be supplied; True if unknown.

        Example:
            >>> Supply(700.0, 700.0).suffices(np.array([690.0, 710.0])).tolist()
            [True, False]
        """
        return self._within(self.most_w, power_w)

    def suffices_by_default(self, power_w: Floats) -> Mask:
        """Whether a power (...) [W] can be supplied without raising the limit."""
        return self._within(self.default_w, power_w)

    def under(self, cap_w: Floats) -> Floats:
        """The most that a run draws under caps of each board (...) [W].

        It is the share that it drew of its own; the whole where that did not hold it, or is not
        known; from one on that was not kept, what was drawn under that.
        """
        share = self.most_w / self.cap_w if self.holds else 1.0
        if self.drawn_w > NOT_KEPT * self.cap_w:
            cap_w = np.where(cap_w < self.cap_w, cap_w, np.maximum(cap_w, self.drawn_w))
        return cap_w * (share * self.boards)

    def _within(self, limit_w: float, power_w: Floats) -> Mask:
        slack = ROUNDING if self.is_bound else AS_MEASURED
        most_w = max(limit_w * (1 + ROUNDING), self.drawn_w * (1 + slack))
        return np.asarray(~(power_w / self.boards > most_w))


UNLIMITED = Supply()  # what is not known


def is_at_limit(power_w: float, cap_w: float) -> bool:
    """Whether a board that drew that was held by its limit [W]; not by NaN, or one not kept."""
    return HELD * cap_w <= power_w <= NOT_KEPT * cap_w


def supply_of(
    device: str,
    *drawn: float,
    cap_w: float = math.nan,
    gpu_count: int = 1,
    hottest_gpu_ratio: float = 1.0,
) -> Supply:
    """What each board of a run supplies that was measured to draw these powers on all [W].

    cap_w: the limit that each was under [W]; where that is NaN or was not kept, the device table's
    limits hold.
    Unlimited where that has none of it either.
    """
    run = Supply(cap_w=cap_w, gpu_count=gpu_count, hottest_gpu_ratio=hottest_gpu_ratio)
    known, drawn_w = known_device(device), max(drawn, default=0.0) / run.boards
    if not math.isnan(cap_w):
        run = replace(run, drawn_w=drawn_w)
    if run.is_bound:
        most_w = drawn_w if is_at_limit(drawn_w, cap_w) else cap_w
        return replace(run, most_w=most_w, default_w=most_w)
    if known is None or known.most_power_w is None or known.default_power_w is None:
        return run
    most_w, default_w = max(known.most_power_w, drawn_w), max(known.default_power_w, drawn_w)
    return replace(run, most_w=most_w, default_w=default_w, drawn_w=drawn_w)


def supply_of_run(profiles: Profiles, added_w: float = 0.0, run_drawn_w: float = 0.0) -> Supply:
    """What the board of a run supplies, under its limit, see `run_cap_w`.

    added_w [W]: to all power that was measured. run_drawn_w [W]: the most that was drawn, where
    the profiles are only some of the run's kernels.
    """
    drawn = (drawn_w(profiles) + added_w, run_drawn_w)
    found = supply_of(
        profiles.device,
        *drawn,
        cap_w=run_cap_w(profiles),
        gpu_count=profiles.gpu_count,
        hottest_gpu_ratio=profiles.hottest_gpu_ratio,
    )
    further = [point.power_w for point in profiles.points if point.power_w is not None]
    if profiles.power_w is None or not further:
        return found
    least_w = _most_w(np.fmin.reduce([profiles.power_w, *further])) + added_w
    return replace(found, least_w=least_w / found.boards)


def run_cap_w(profiles: Profiles) -> float:
    """The limit that a run's base had [W]; NaN where no reading states one.

    Where the base does not, it is the lowest of those that others state and the base keeps.
    """
    if not math.isnan(profiles.power_cap_w):
        return profiles.power_cap_w
    base_w = _most_w(profiles.power_w) * profiles.hottest_gpu_ratio / profiles.gpu_count
    stated = [point.power_cap_w for point in profiles.points]
    return min((cap_w for cap_w in stated if base_w <= NOT_KEPT * cap_w), default=math.nan)


def drawn_w(profiles: Profiles) -> float:
    """The most that a kernel was measured to draw [W] under the run's limit, or a lower one.

    0 where no power is known.
    """
    cap_w = run_cap_w(profiles)
    points = [one for one in profiles.points if math.isnan(cap_w) or one.power_cap_w <= cap_w]
    return max(_most_w(power_w) for power_w in [profiles.power_w, *(one.power_w for one in points)])


def _most_w(power_w: Floats | None) -> float:
    """The most of kernels' power (K,) [W]; 0 where none is known."""
    return 0.0 if power_w is None else float(np.fmax.reduce(power_w, initial=0.0))


def has_reading_at_limit(profiles: Profiles) -> bool:
    """Whether a reading drew its power limit, or the board's default if none is stated."""
    known = known_device(profiles.device)
    default_w = (known and known.default_power_w) or math.nan
    loads = _loads(profiles)
    return any(is_at_limit(w, default_w if math.isnan(cap_w) else cap_w) for _, w, cap_w in loads)


def _loads(profiles: Profiles) -> list[tuple[float, float, float]]:
    """Of each reading its clock [MHz], what its hottest board drew [W], and its limit [W]."""
    base = MeasuredPoint(
        profiles.base,
        profiles.time_ms,
        profiles.power_w,
        power_cap_w=run_cap_w(profiles),
        hottest_gpu_ratio=profiles.hottest_gpu_ratio,
    )
    return [
        (
            at.config.engine_mhz,
            _most_w(at.power_w) * at.hottest_gpu_ratio / profiles.gpu_count,
            at.power_cap_w,
        )
        for at in (base, *profiles.points)
    ]


def limit_notes(profiles: Profiles, takes_caps: bool = False) -> list[Note]:
    """Which GPUs have unlike power limits, and which readings drew theirs, which set the clock.

    takes_caps: whether the parameter `caps` is there where the notes are told.
    """
    unlike = "".join(profiles.metadata.get("unlike_power_limits", {}).values())
    notes = [Note("P03", f"{unlike}: the GPU nearest to its own counts", "warning")] * bool(unlike)
    notes += limiter_notes(profiles.metadata, run_cap_w(profiles))
    told = []
    for mhz, watts, cap_w in _loads(profiles):
        if watts > NOT_KEPT * cap_w:
            text = (
                f"at {mhz:g} MHz a power limit of {cap_w:g} W was not kept, the run drew "
                f"{watts:.0f} W: the limit is ignored; measure a run at what you set"
            )
            notes.append(Note("P03", text, "warning"))
        if is_at_limit(watts, cap_w):
            told.append(f"{watts:.0f} of {cap_w:g} W at {mhz:g} MHz")
    if not told:
        return notes
    more = "; no higher clock is reached under it"
    if takes_caps and not unlike and not profiles.metadata.get("power_limit_w"):
        more += f", {parameter('caps', 'W')} shows what a higher limit brings"
    text = f"the run drew its power limit, {' and '.join(told)}: the limit set the clock"
    return [*notes, Note("P03", text + more * supply_of_run(profiles).holds)]


def limiter_notes(metadata: Mapping[str, Any], cap_w: float) -> list[Note]:
    """That the limit of a run [W] is another limiter's, where its files show a higher one set."""
    if not (asked_w := metadata.get("power_limit_w")):
        return []
    text = (
        f"the power limit was set to {asked_w:g} W, but {cap_w:g} W are enforced: another limiter "
        "of the board or the machine holds it; no cap above that takes effect"
    )
    return [Note("P03", text, "warning")]


def with_held_ends(surfaces: dict[str, Surfaces], supply: Supply) -> dict[str, Surfaces]:
    """Absolute surfaces whose high ends are of what a board does that supplies no more.

    Where a kernel may draw more than that, though it is not predicted to, its power ends there (at
    what is predicted, where that is just above), and its time is that of the lower clock to which
    the GPU goes, both at their high ends.
    """
    time, power = surfaces.get("time"), surfaces.get("power")
    if time is None or power is None or power.high is None or time.high is None:
        return surfaces
    is_held = supply.suffices(power.values) & ~supply.suffices(power.high)
    if not is_held.any():
        return surfaces
    k = is_held.any(axis=(1, 2, 3))
    lowered_ms = time.high.copy()
    lowered_ms[k] = _lowered(supply.most_of_run_w, time.high[k], power.high[k])
    most_w = np.maximum(supply.most_of_run_w, power.values)
    return surfaces | {
        "time": replace(time, high=np.where(is_held, np.maximum(time.high, lowered_ms), time.high)),
        "power": replace(power, high=np.where(is_held, most_w, power.high)),
    }


def _lowered(most_w: float, time_ms: Floats, power_w: Floats) -> Floats:
    """Times (K, C, E, M) of kernels that need more than that power and are held to it.

    Between the highest lower clock that keeps it and the next the GPU dithers, so that the mean
    power is the most; rates of work are linear in the share of the time. Where no lower clock
    keeps it, the time is that of the lowest.
    """
    steps = np.arange(time_ms.shape[2])[:, None]
    keeps = power_w <= most_w * (1 + ROUNDING)
    lower = np.maximum.accumulate(np.where(keeps, steps, -1), axis=2)
    upper = np.minimum(lower + 1, steps)
    below = np.maximum(lower, 0)
    low_w, high_w = (np.take_along_axis(power_w, at, axis=2) for at in (below, upper))
    low, high = (1 / np.take_along_axis(time_ms, at, axis=2) for at in (below, upper))
    share = np.zeros(time_ms.shape)
    np.divide(most_w - low_w, high_w - low_w, out=share, where=upper > below)
    held_ms = 1 / (low + np.clip(share, 0.0, 1.0) * (high - low))
    return np.where((lower < 0) | np.isnan(held_ms), time_ms[:, :, :1], held_ms)
