"""One GPU: what it is made of, the peaks that follow from it, and the clocks that it offers.

A device has the same fields here, in devices.json, in a model file and in a device file of one's
own. A memory clock is always the one the vendor's tool lists.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from types import UnionType
from typing import Any, get_args

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError

ABOVE_RATED = 1.05  # times the rated engine clock: what an AMD GPU runs at most
# No tool of AMD's sets it; the GPUs of its processors are of RDNA 3.5.
CHOOSE_THEIR_MEMORY_CLOCK = ("CDNA 2", "CDNA 3", "CDNA 4", "RDNA 3", "RDNA 4")
IMPOSSIBLE_SHARE = 10.0  # of the peak, by which no clock is mistaken: the time is in another unit
SECTOR_BYTES = 32  # of one DRAM or L2 transaction, as NVIDIA's profilers count them
LARGEST_SHARE = 1.05  # of the peak: above it, bytes, time, clock or GPU are not what they are said


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_list(value: object, of: Callable[[object], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(of, value))


def _is_range(value: Any) -> bool:
    return _is_list(value, _is_number) and len(value) == 2 and bool(value[0] <= value[1])


# What a field of a type accepts, and how an error message calls that.
_KINDS: dict[Any, tuple[Callable[[object], bool], str]] = {
    str: (_is_text, "text"),
    int: (_is_count, "a positive whole number"),
    float: (_is_number, "a positive number"),
    tuple[str, ...]: (partial(_is_list, of=_is_text), "a list of text"),
    tuple[float, ...]: (partial(_is_list, of=_is_number), "a list of positive numbers"),
    tuple[float, float]: (_is_range, "a list of the lowest and the highest, positive numbers"),
}


@dataclass(frozen=True)
class Datasheet:
    """What the vendor prints, and the clocks [MHz] at which it holds; to check a device by."""

    engine_mhz: float
    memory_mhz: float
    bandwidth_gb_per_s: float
    fp32_gflops: float
    fp64_gflops: float
    source: str


@dataclass(frozen=True)
class Device:
    """One GPU. A CU is NVIDIA's SM; a wave is NVIDIA's warp; lanes work once per engine cycle.

    Everything from compute_capability on is optional: None, or empty, where it is not known.

    Attributes:
        key: the name in the device table.
        name: what the vendor calls it.
        vendor: who makes it.
        architecture: generation and chip.
        cu_count: CUs of the whole device.
        lanes_per_cu: FP32 multiply-adds a CU starts per cycle.
        fp64_lanes_per_cu: FP64 multiply-adds a CU starts per cycle.
        special_function_lanes_per_cu: transcendental results of a CU per cycle.
        schedulers_per_cu: wave instructions a CU issues per cycle at most, of all kinds; on
            NVIDIA parts the schedulers, without their dual issue.
        wave_size: threads per wave.
        max_waves_per_cu: waves resident on a CU at most.
        memory_bus_bits: width of the memory bus.
        memory_transfers_per_cycle: transfers on each wire per cycle of the listed memory clock.
        datasheet: the vendor's numbers; None for a simulated device.
        note: what else a reader must know.
        compute_capability: of CUDA, '9.0'.
        form_factor: board or module.
        aliases: the names by which tools print this device and no other.
        shared_names: names that other devices bear too, which the CU count decides: gfx names,
            families. One that is an alias as well is taken for this device, with a warning.
        pci_ids: vendor and device, '10de:2330'.
        l2_bytes: all of the L2 cache.
        l3_bytes: AMD's Infinity Cache.
        max_shared_bytes_per_cu: shared memory (LDS) of a CU.
        registers_per_cu: 32-bit registers of a CU.
        xcd_count: compute dies.
        se_count: shader engines of all dies.
        base_mhz: the vendor's base clock.
        max_clock_mhz: the highest engine clock that the vendor's tool lists.
        engine_clock_range_mhz: lowest and highest engine clock that can be set.
        engine_clock_step_mhz: what the engine clocks that can be set are multiples of.
        supported_memory_mhz: memory clocks that the vendor's tool lists, highest first.
        tensor_fp16_gflops: dense FP16 matrix rate with FP32 accumulation.
        tdp_w: the board's default power limit.
        min_power_limit_w: the lowest power limit that can be set.
        max_power_limit_w: the highest.
        idle_w: board power without a process, one reading.
        voltage_floor_mhz: the highest engine clock at the least voltage; it rises from there on.
        clock_control: how the clocks are set.
        unverified: fields whose value is from memory, not from a source.
        fp32_issue_factor: FP32 operations that a lane starts per cycle, as the sheet counts them:
            2 where it counts packed or dual-issued ones.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    cu_count: int
    lanes_per_cu: int
    fp64_lanes_per_cu: int
    special_function_lanes_per_cu: int
    schedulers_per_cu: int
    wave_size: int
    max_waves_per_cu: int
    memory_bus_bits: int
    memory_transfers_per_cycle: int
    datasheet: Datasheet | None
    note: str
    compute_capability: str | None = None
    form_factor: str | None = None
    aliases: tuple[str, ...] = ()
    shared_names: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    max_shared_bytes_per_cu: int | None = None
    registers_per_cu: int | None = None
    xcd_count: int | None = None
    se_count: int | None = None
    base_mhz: float | None = None
    max_clock_mhz: float | None = None
    engine_clock_range_mhz: tuple[float, float] | None = None
    engine_clock_step_mhz: float | None = None
    supported_memory_mhz: tuple[float, ...] | None = None
    tensor_fp16_gflops: float | None = None
    tdp_w: float | None = None
    min_power_limit_w: float | None = None
    max_power_limit_w: float | None = None
    idle_w: float | None = None
    voltage_floor_mhz: float | None = None
    clock_control: str | None = None
    unverified: tuple[str, ...] = ()
    fp32_issue_factor: int = 1

    @property
    def most_power_w(self) -> float | None:
        """The most that the board may be set to draw, as far as that is known [W]."""
        return self.max_power_limit_w or self.tdp_w

    @property
    def default_power_w(self) -> float | None:
        """What the board is set to draw at most unless somebody changed it, if known [W]."""
        limits = [limit for limit in (self.tdp_w, self.most_power_w) if limit is not None]
        return min(limits, default=None)

    @property
    def is_jetson(self) -> bool:
        """Whether it is the GPU of one of NVIDIA's Jetson modules, by its name."""
        return "Jetson" in self.name

    def peak_bandwidth_gb_per_s(self, memory_mhz: float) -> float:
        """Peak DRAM bandwidth [GB/s, 1e9 bytes] at a memory clock as the vendor's tool lists it."""
        return self.memory_bus_bits / 8 * self.memory_transfers_per_cycle * memory_mhz / 1e3

    def share_of_bandwidth(
        self, dram_bytes: Floats, seconds: Floats | float, memory_mhz: Floats | float
    ) -> Floats:
        """DRAM bytes as a share of what the bus passes in that time at that memory clock."""
        peak_bytes_per_s = self.peak_bandwidth_gb_per_s(1.0) * 1e9 * np.asarray(memory_mhz)
        return np.asarray(dram_bytes / (peak_bytes_per_s * seconds))

    def peak_fp32_gflops(self, engine_mhz: float) -> float:
        """Peak FP32 rate of all CUs [GFLOPS]; a multiply-add counts as two operations."""
        lanes = self.lanes_per_cu * self.fp32_issue_factor
        return 2 * self.cu_count * lanes * engine_mhz / 1e3

    def peak_fp64_gflops(self, engine_mhz: float) -> float:
        """Peak FP64 rate of all CUs [GFLOPS]; a multiply-add counts as two operations."""
        return 2 * self.cu_count * self.fp64_lanes_per_cu * engine_mhz / 1e3

    def derived_and_printed(self) -> dict[str, tuple[float, float]]:
        """By field of the data sheet the peak that follows at its clocks, and the printed one."""
        sheet = self.datasheet
        if sheet is None:
            return {}
        bandwidth = self.peak_bandwidth_gb_per_s(sheet.memory_mhz)
        return {
            "bandwidth_gb_per_s": (bandwidth, sheet.bandwidth_gb_per_s),
            "fp32_gflops": (self.peak_fp32_gflops(sheet.engine_mhz), sheet.fp32_gflops),
            "fp64_gflops": (self.peak_fp64_gflops(sheet.engine_mhz), sheet.fp64_gflops),
        }

    def engine_clocks_mhz(self) -> tuple[float, ...]:
        """The engine clocks that the GPU offers, ascending, as the vendor's tool prints them.

        They are the multiples of the step within the range, rounded down: a V100 in steps of 7.5
        MHz lists 135, 142, 150, … The highest of the range is one of them. Those of AMD's that are
        far above the rated clock are left out: its driver accepts them, but they never run. Empty
        where range or step is not known.
        """
        if self.engine_clock_range_mhz is None or self.engine_clock_step_mhz is None:
            return ()
        low, high = self.engine_clock_range_mhz
        if self.vendor == "AMD" and self.datasheet is not None:
            high = min(high, ABOVE_RATED * self.datasheet.engine_mhz)
        clocks = multiples_mhz(low, high, self.engine_clock_step_mhz)
        highest = float(math.floor(high))
        return clocks if clocks[-1] == highest else (*clocks, highest)

    def highest_mhz(self, clock: str) -> float | None:
        """The highest 'engine_mhz' or 'memory_mhz' it is known to have [MHz], None where none is.

        A data sheet's engine clock may be exceeded, so it counts for the memory alone.
        """
        known: list[float | None] = [*self.memory_clocks_mhz()]
        if clock == "engine_mhz":
            known = [self.max_clock_mhz, *(self.engine_clock_range_mhz or ())]
        elif self.datasheet is not None:
            known.append(self.datasheet.memory_mhz)
        return max(filter(None, known), default=None)

    def memory_clocks_mhz(self) -> tuple[float, ...]:
        """The memory clocks that the vendor's tool lists, ascending; empty where not known."""
        return tuple(sorted(self.supported_memory_mhz or ()))

    def settable_memory_mhz(self) -> tuple[float, ...]:
        """The memory clocks that can be set, ascending; none where the GPU chooses by itself."""
        return () if self.chooses_memory_clock else self.memory_clocks_mhz()

    @property
    def chooses_memory_clock(self) -> bool:
        """Whether no tool sets its memory clock: under load it is the highest."""
        return self.architecture.startswith(CHOOSE_THEIR_MEMORY_CLOCK)

    @property
    def working_memory_mhz(self) -> float | None:
        """The memory clock under load, where it is known without being said.

        It is the only one that there is, or the highest of a GPU that chooses by itself.
        """
        clocks_mhz = self.memory_clocks_mhz()
        if len(clocks_mhz) == 1:
            return clocks_mhz[0]
        return self.highest_mhz("memory_mhz") if self.chooses_memory_clock else None

    @property
    def is_half_a_module(self) -> bool:
        """Whether it is one of two dies of a module, each a GPU of its own: of an MI250, MI250X."""
        return self.key.endswith("-gcd")

    @property
    def dies(self) -> int | None:
        """Compute dies, each of which counts its own cycles; None where not known.

        Of AMD's GPUs those of CDNA 3 and 4 alone have several.
        """
        has_one = self.vendor == "AMD" and bool(self.architecture)
        has_one = has_one and not self.architecture.startswith(("CDNA 3", "CDNA 4", "gfx9"))
        return 1 if self.xcd_count is None and has_one else self.xcd_count

    @property
    def defers_memory_clock(self) -> bool:
        """Whether its memory clock changes only as the driver is loaded anew: NVIDIA's Hopper.

        Source: nvidia-smi(1), https://docs.nvidia.com/deploy/nvidia-smi/, of --lock-memory-clocks.
        """
        return self.architecture.startswith("Hopper")

    @property
    def is_consumer(self) -> bool:
        """Whether it is a GeForce or TITAN.

        Their driver runs CUDA programs in a state (P2) whose memory clock is below the highest.
        """
        return "GeForce" in self.name or "TITAN" in self.name

    def as_dict(self) -> dict[str, object]:
        """The device as JSON carries it, for example inside a model file; unknowns are left out."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING or value != field.default:
                values[field.name] = list(value) if isinstance(value, tuple) else value
        if self.datasheet is not None:
            values["datasheet"] = vars(self.datasheet).copy()
        return values

    @classmethod
    def from_dict(cls, values: object) -> "Device":
        """The device that as_dict gave. Raises InputError on what is no such dictionary."""
        device = _checked_fields(cls, values, "device")
        if device["datasheet"] is not None:
            sheet = _checked_fields(Datasheet, device["datasheet"], "datasheet")
            device["datasheet"] = Datasheet(**sheet)
        own = cls(**device)
        own._require_floor_among_clocks()
        return own

    def _require_floor_among_clocks(self) -> None:
        """Raises InputError on a floor of the voltage that is no clock of the GPU, as in kHz."""
        floor = self.voltage_floor_mhz
        lowest = min(self.engine_clock_range_mhz or (0.0,))
        rated = self.datasheet.engine_mhz if self.datasheet else None
        highest = max(filter(None, (self.highest_mhz("engine_mhz"), rated)), default=math.inf)
        if floor is not None and not lowest <= floor <= highest:
            raise InputError(
                f"voltage_floor_mhz of the device is {floor:.10g} MHz, and its engine clocks are "
                f"{f'{lowest:g} to ' if lowest else 'at most '}{highest:g} MHz"
            )


def multiples_mhz(lowest: float, highest: float, step: float) -> tuple[float, ...]:
    """The multiples of a step from the lowest to the highest clock, rounded down [MHz]."""
    numbers = range(math.floor(lowest / step), math.floor((highest + 1) / step) + 1)
    clocks = (float(math.floor(number * step)) for number in numbers)
    return tuple(clock for clock in clocks if lowest <= clock <= highest)


def _checked_fields(cls: type, values: object, what: str) -> dict[str, Any]:
    """The fields of a dataclass, each of its type. Raises InputError with all faults at once."""
    if not isinstance(values, Mapping):
        raise InputError(f"the {what} must be a table of fields, not {type(values).__name__}")
    types = {field.name: field.type for field in fields(cls)}
    required = {field.name for field in fields(cls) if field.default is MISSING}
    faults = []
    if missing := required - values.keys():
        faults.append(f"the {what} lacks {', '.join(sorted(missing))}")
    if unknown := values.keys() - types:
        faults.append(f"the {what} has unknown {', '.join(sorted(map(ascii, unknown)))}")
    for name, value in values.items():
        if expected := _misfit(types.get(name), value):
            faults.append(f"{name} of the {what} must be {expected}, not {ascii(value)[:40]}")
    if faults:
        raise InputError("; ".join(faults))
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def _misfit(kind: Any, value: object) -> str | None:
    """What a field of that type must be, if the value is something else."""
    accepted = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if value is None and type(None) in accepted:
        return None
    fits, expected = _KINDS.get(accepted[0], (None, ""))
    return None if fits is None or fits(value) else expected
