"""A fitted power model of Nagasaka et al. in a file, and the power of kernels never measured.

The paper's purpose (its sections I and V): where the model is known, counters and time are enough.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import absolute_percentage_error
from mlscale.errors import InputError
from mlscale.file_kinds import POWER_MODEL, require_kind
from mlscale.files import parse_json_object, read_bytes, write_text
from mlscale.papers.nagasaka import LinearPowerModel, estimate_power_w
from mlscale.papers.nagasaka_inputs import (
    FEW_BLOCKS,
    SETS,
    TEXTURE,
    UNLEARNT,
    VARIABLES,
    has_few_blocks,
    unlearnt,
    variable_rates,
)
from mlscale.papers.nvprof_run import NvprofRun, flags_of, uses_texture_path


@dataclass(frozen=True, eq=False)
class PowerEstimates:
    """The estimated power of K kernels.

    Attributes:
        estimated_w: (K,) [W].
        flags: for each kernel, why its estimate may be off.
    """

    estimated_w: Floats
    flags: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class FittedPowerModel:
    """A model of Eq. (1), the configuration that it holds at, and what it learnt from.

    Attributes:
        device, base: the GPU and the configuration of the training.
        counters: the name of the set of counters, one of SETS.
        variables: the names of its variables, which are those of `model`.
        model: energies and intercept.
        lowest, highest: of each variable over the training kernels, (F,) [1/s].
        penalty: lambda.
        n_kernels: how many kernels it learnt from.
        mape: error of kernels that were held out with their application, mean [%].
    """

    device: str
    base: HardwareConfig
    counters: str
    variables: tuple[str, ...]
    model: LinearPowerModel
    lowest: Floats
    highest: Floats
    penalty: float
    n_kernels: int
    mape: float

    def estimate(self, profiles: Profiles) -> PowerEstimates:
        """Return the power of the profiles' kernels; their own power is not looked at.

        Raises InputError where they are of another GPU or configuration, or lack a counter.

        By hand: 40 W, and 2 nJ for each of 6e6 instructions in 2 ms.

        >>> base = HardwareConfig(16, 700, 700)
        >>> model = FittedPowerModel(
        ...     device="gtx980", base=base, counters="Inst", variables=("instructions",),
        ...     model=LinearPowerModel(np.array([2e-9]), 40.0), lowest=np.array([1e9]),
        ...     highest=np.array([5e9]), penalty=0, n_kernels=20, mape=5)
        >>> profiles = Profiles(
        ...     device="gtx980", base=base, kernels=("copy",), applications=("copy",),
        ...     time_ms=np.array([2.0]), power_w=None, counter_names=("inst_executed",),
        ...     counters=np.array([[6e6]]))
        >>> print(model.estimate(profiles).estimated_w)
        [46.]
        """
        if (profiles.device, profiles.base) != (self.device, self.base):
            raise InputError(
                f"the model holds on {self.device} at {self.base}, not on {profiles.device} at "
                f"{profiles.base}: its intercept holds the idle power there; fit another"
            )
        columns = variable_rates(profiles, self.variables).values()
        rates = np.column_stack([np.empty((len(profiles.kernels), 0)), *columns])
        estimated = np.asarray(estimate_power_w(self.model, rates))
        outside = (rates < self.lowest) | (rates > self.highest)
        unknown = unlearnt(self.highest[None], rates)
        conditions = {
            TEXTURE: uses_texture_path(NvprofRun(profiles)) == 1,
            FEW_BLOCKS: has_few_blocks(profiles),
            "the estimate is not above 0 W": estimated <= 0,
            **{f"{name}: {UNLEARNT}": unknown[:, i] for i, name in enumerate(self.variables)},
            **{
                f"{name}: outside the training kernels'": outside[:, i] & ~unknown[:, i]
                for i, name in enumerate(self.variables)
            },
        }
        return PowerEstimates(estimated, flags_of(conditions))

    def estimates_document(self, profiles: Profiles) -> dict[str, Any]:
        """The power of the kernels as JSON values; where it was measured, the mean error too.

        Raises InputError as `estimate` does.
        """
        estimates = self.estimate(profiles)
        estimated_w, count = estimates.estimated_w.tolist(), len(profiles.kernels)
        actual_w = [None] * count if profiles.power_w is None else profiles.power_w.tolist()
        rows = [
            {
                "kernel": profiles.kernels[k],
                "time_ms": float(profiles.time_ms[k]),
                "estimated_w": estimated_w[k],
                "energy_mj": float(estimated_w[k] * profiles.time_ms[k]),
                "actual_w": actual_w[k],
                "flags": list(estimates.flags[k]),
            }
            for k in range(count)
        ]
        mape = None
        if profiles.power_w is not None:
            errors = absolute_percentage_error(estimates.estimated_w, profiles.power_w)
            mape = float(errors.mean())
        return {
            "literature": "nagasaka-estimate",
            "device": self.device,
            "base": self.base.as_dict(),
            "counters": self.counters,
            "held_out_mape": self.mape,
            "estimates": rows,
            "mape": mape,
        }

    @property
    def intercept_w(self) -> float:
        """The power that is there without any event [W]."""
        return self.model.intercept_w

    def document(self) -> dict[str, Any]:
        """Return what a file of it holds."""
        variables = zip(
            self.variables,
            (1e9 * self.model.energy_j).tolist(),
            self.lowest.tolist(),
            self.highest.tolist(),
            strict=True,
        )
        return {
            "format": POWER_MODEL,
            "format_version": 1,
            "device": self.device,
            "base": self.base.as_dict(),
            "counters": self.counters,
            "variables": [
                {"name": name, "energy_nj": energy, "lowest_per_s": low, "highest_per_s": high}
                for name, energy, low, high in variables
            ],
            "intercept_w": self.intercept_w,
            "penalty": self.penalty,
            "n_kernels": self.n_kernels,
            "mape": self.mape,
        }

    def save(self, path: Path) -> None:
        """Write a JSON file. Raises InputError."""
        write_text(path, json.dumps(self.document(), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote. Raises InputError on another file, or a damaged one."""
        content = read_bytes(path)
        require_kind(content, path, POWER_MODEL)
        document = parse_json_object(content, str(path), only_finite=True)
        if document.get("format") != POWER_MODEL or document.get("format_version") != 1:
            raise InputError(f"{path}: is not a model of 'mlscale literature nagasaka-fit'")
        try:
            return cls._of(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{path}: is damaged ({type(error).__name__}: {error}); fit it again"
            ) from None

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Self:
        entries = document["variables"]
        names = tuple(str(entry["name"]) for entry in entries)
        if unknown := [name for name in names if name not in VARIABLES]:
            raise ValueError(f"there is no variable '{unknown[0]}'")
        if document["counters"] not in SETS:
            raise ValueError(f"there is no set of counters '{document['counters']}'")
        energy_nj, lowest, highest = (
            np.array([float(entry[key]) for entry in entries])
            for key in ("energy_nj", "lowest_per_s", "highest_per_s")
        )
        base = [float(document["base"][axis]) for axis in AXES]
        return cls(
            device=str(document["device"]),
            base=HardwareConfig(int(base[0]), *base[1:]),
            counters=document["counters"],
            variables=names,
            model=LinearPowerModel(1e-9 * energy_nj, float(document["intercept_w"])),
            lowest=lowest,
            highest=highest,
            penalty=float(document["penalty"]),
            n_kernels=int(document["n_kernels"]),
            mape=float(document["mape"]),
        )
