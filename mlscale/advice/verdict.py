"""The verdict: the advice in one sentence, the way one engineer would tell it to another."""

from mlscale.advice.advise import Advice
from mlscale.data.grid import HardwareConfig
from mlscale.predictions import COVERAGE

SAVED = {"energy": "energy", "edp": "energy x time", "ed2p": "energy x time^2", "power": "power"}
_AXES = {
    "cu_count": "{:g} CUs",
    "engine_mhz": "the engine clock to {:g} MHz",
    "memory_mhz": "the memory clock to {:g} MHz",
}


def verdict(advice: Advice) -> str:
    """Say what to set, what it costs and what it saves, with the intervals where there are any.

    Of several kernels it is about the one configuration for all of them, each run once.

    Example:
        >>> print(verdict(mlscale.advise(model, profiles)))  # doctest: +SKIP
        Set the engine clock to 1350 MHz: 21.2 % less energy (90 % interval 15.0 to 26.1 %) and
        3.9 % slower (2.1 to 6.0 %) than at the base, cu=132,engine=1980,memory=2619.
    """
    several = len(advice.kernels) > 1
    overall = advice.whole_run
    if overall is None:
        return f"No single configuration serves every kernel{advice.limits.under()}; see each."
    best, base = overall.best.config, overall.base.config
    subject = f"For the {len(advice.kernels)} kernels, each run once: " if several else ""
    if best == base:
        return f"{subject}Stay at the base, {base}: {_nothing_better(advice)}."
    effects = [_change(overall.slowdown_percent, overall.slowdown_range, "faster", "slower")]
    if advice.objective in SAVED:
        more, less = (f"{word} {SAVED[advice.objective]}" for word in ("more", "less"))
        effects.insert(0, _change(overall.saving_percent, overall.saving_range, more, less))
    text = f"{subject}Set {_settings(best, base)}: {' and '.join(effects)} than at the base, {base}"
    if best.engine_mhz == advice.lowest_mhz < base.engine_mhz:
        text += "; no lower engine clock was tried"
    elif advice.objective == "clock":
        text += f"; no lower engine clock keeps {' and '.join(advice.limits.words().values())}"
    return text + "."


def _nothing_better(advice: Advice) -> str:
    under = advice.limits.under().removeprefix(", ")
    match advice.objective:
        case "time":
            return f"nothing is faster {under}".rstrip()
        case "clock":
            return f"no lower engine clock is predicted to do {under}".rstrip()
    return f"nothing is predicted to need less {SAVED[advice.objective]} {under}".rstrip()


def _settings(best: HardwareConfig, base: HardwareConfig) -> str:
    """The settings that differ from the base."""
    former = base.as_dict()
    changed = {axis: value for axis, value in best.as_dict().items() if value != former[axis]}
    return " and ".join(_AXES[axis].format(value) for axis, value in changed.items())


def _change(percent: float, ends: tuple[float, float] | None, negative: str, positive: str) -> str:
    """A change [%] in words, with its interval: '3.9 % slower (90 % interval 2.1 to 6.0 %)'."""

    def word(value: float) -> str:
        return negative if value < 0 else positive

    text = f"{abs(percent):.1f} % {word(percent)}"
    if ends is None:
        return text
    low, high = sorted(ends)
    if low * high >= 0:
        near, far = sorted((abs(low), abs(high)))
        return f"{text} ({100 * COVERAGE:g} % interval {near:.1f} to {far:.1f} %)"
    sides = f"{abs(low):.1f} % {negative} to {high:.1f} % {positive}"
    return f"{text} ({100 * COVERAGE:g} % interval {sides})"
