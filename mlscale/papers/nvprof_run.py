"""The nvprof counters of one run of each kernel, checked as they are read."""

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError

_TEXTURE_MARGIN = 1.05


class NvprofRun:
    """The counters of K kernels; every method raises InputError naming kernel and counter."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def has(self, name: str) -> bool:
        """Whether the profiles have that counter."""
        return self._profiles.has_counter(name)

    def count(self, name: str) -> Floats:
        """Return a counter that every kernel must have, finite and not negative, (K,)."""
        values = self._profiles.counter(name)
        self.refuse(np.isnan(values), name, "is missing; measure it, or leave the kernel out")
        self.refuse((values < 0) | np.isinf(values), name, "is not a count")
        return values

    def optional(self, name: str) -> Floats:
        """Return a counter that may be absent: NaN where it is missing, (K,)."""
        values = self._profiles.optional_counter(name)
        self.refuse((values < 0) | np.isinf(values), name, "is not a count")
        return values

    def total(self, *names: str) -> Floats:
        """Return the sum of counters that every kernel must have, (K,)."""
        return np.asarray(np.sum([self.count(name) for name in names], axis=0))

    def lacking_for_requests(self, names: Sequence[str]) -> list[str]:
        """Return the columns that `requests` needs and that are not there."""
        needed = [column for name in names for column in (name, f"{name}_per_request")]
        return [column for column in needed if not self.has(column)]

    def requests(self, names: Sequence[str]) -> Floats | None:
        """Instructions that made the transactions of those names, (K,); None where not counted.

        nvprof gives 0 transactions per request where there were none.
        """
        if self.lacking_for_requests(names):
            return None
        total = np.zeros(len(self._profiles.kernels))
        for name in names:
            transactions = self.count(name)
            per_request = self._profiles.counter(f"{name}_per_request")
            used = transactions > 0
            self.refuse(
                used & ~(per_request > 0),
                f"{name}_per_request",
                f"gives no requests for the transactions in '{name}'",
            )
            total += np.divide(transactions, per_request, out=np.zeros_like(total), where=used)
        return total

    def refuse(self, bad: Mask, name: str, why: str) -> None:
        """Raise InputError, naming the first, where a counter of a kernel is bad, (K,)."""
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            more = f" (and {bad.sum() - 1} more kernels)" if bad.sum() > 1 else ""
            value = self._profiles.counter(name)[k]
            shown = "" if np.isnan(value) else f" {value:g}"
            raise InputError(
                f"kernel '{self._profiles.kernels[k]}', counter '{name}':{shown} {why}{more}"
            )


def flags_of(conditions: Mapping[str, Mask]) -> tuple[tuple[str, ...], ...]:
    """Return for each kernel the flags whose condition (K,) holds of it."""
    holding = zip(*conditions.values(), strict=True)
    return tuple(tuple(compress(conditions, own)) for own in holding)


def uses_texture_path(run: NvprofRun) -> Floats:
    """1 where a kernel has more texture-cache transactions than global loads, else 0, (K,).

    It then reads textures, or spilled registers where these take the same path. NaN where one
    of the two is not counted.
    """
    texture = run.optional("tex_cache_transactions")
    loads = run.optional("gld_transactions")
    unknown = np.isnan(texture) | (np.isnan(loads) & (texture > 0))
    return np.where(unknown, np.nan, texture > _TEXTURE_MARGIN * loads)
