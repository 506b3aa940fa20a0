"""GPUs: what each is made of, the peaks and clocks that follow, and the names that tools print.

devices.json, the device table, holds physical parameters only; every peak is derived from them and
tested against the vendor's data sheet. devices_sources.json says where each number is from. A
device of your own, a JSON file with the same fields, is in the table of this process once it is
registered; tables and models made with it carry its facts and register it where they are read. A
memory clock is always the one the vendor's tool lists.
"""

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

from mlscale.arrays import Floats
from mlscale.errors import InputError, warn
from mlscale.files import parse_json_object, read_bytes, shipped_json
from mlscale.parameters import command
from mlscale.text import did_you_mean

ABOVE_RATED = 1.05  # times the rated engine clock: what an AMD GPU runs at most
# No tool of AMD's sets it; the GPUs of its processors are of RDNA 3.5.
CDNA = ("CDNA 3", "CDNA 4")  # how the architectures of AMD's data-center GPUs of today begin
CHOOSE_THEIR_MEMORY_CLOCK = ("CDNA 2", "CDNA 3", "CDNA 4", "RDNA 3", "RDNA 4")
IMPOSSIBLE_SHARE = 10.0  # times the peak: no clock is so wrong, the time is in another unit
SECTOR_BYTES = 32  # a DRAM or L2 transaction, as NVIDIA's profilers count them
LARGEST_SHARE = (
    1.05  # times the peak: above it, bytes, time, clock or GPU are not what they are said
)


@dataclass(frozen=True)
class Datasheet:
    """What the vendor prints, and the clocks [MHz] at which that is true; to check a device."""

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
    """

    key: str  # the name in the device table
    name: str  # what the vendor calls it
    vendor: str
    architecture: str  # generation and chip
    cu_count: int  # CUs of the whole device
    lanes_per_cu: int  # FP32 multiply-adds a CU starts per cycle
    fp64_lanes_per_cu: int  # FP64 multiply-adds a CU starts per cycle
    special_function_lanes_per_cu: int  # transcendental results of a CU per cycle
    # Wave instructions a CU issues per cycle at most, of all kinds; on NVIDIA parts the schedulers,
    # without their dual issue.
    schedulers_per_cu: int
    wave_size: int  # threads per wave
    max_waves_per_cu: int  # waves resident on a CU at most
    memory_bus_bits: int
    memory_transfers_per_cycle: int  # on each wire, per cycle of the listed memory clock
    datasheet: Datasheet | None  # the vendor's numbers; None for a simulated device
    note: str  # what else a reader must know
    compute_capability: str | None = None  # CUDA's, '9.0'
    form_factor: str | None = None  # board or module
    aliases: tuple[str, ...] = ()  # the names by which tools print this device and no other
    # Names that other devices bear too, which the CU count decides: gfx names, families. One that
    # is also an alias means this device.
    shared_names: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()  # vendor and device, '10de:2330'
    l2_bytes: int | None = None  # all of the L2 cache
    l3_bytes: int | None = None  # AMD's Infinity Cache
    max_shared_bytes_per_cu: int | None = None  # shared memory (LDS) of a CU
    registers_per_cu: int | None = None  # 32-bit registers of a CU
    xcd_count: int | None = None  # compute dies
    se_count: int | None = None  # shader engines of all dies
    base_mhz: float | None = None  # the vendor's base clock
    max_clock_mhz: float | None = None  # the highest engine clock that the vendor's tool lists
    engine_clock_range_mhz: tuple[float, float] | None = None  # that can be set
    engine_clock_step_mhz: float | None = None  # these are its multiples
    supported_memory_mhz: tuple[float, ...] | None = None  # as the vendor's tool lists, falling
    tensor_fp16_gflops: float | None = None  # dense FP16 matrix rate with FP32 accumulation
    tdp_w: float | None = None  # the board's default power limit
    min_power_limit_w: float | None = None  # that can be set; see lowest_cap_w
    max_power_limit_w: float | None = None
    idle_w: float | None = None  # board power without a process, one reading
    voltage_floor_mhz: float | None = None  # the highest engine clock at the least voltage
    clock_control: str | None = None  # how the clocks are set
    unverified: tuple[str, ...] = ()  # fields whose value is from memory, not from a source
    # FP32 operations that a lane starts per cycle, as the sheet counts them: 2 where it counts
    # packed or dual-issued ones.
    fp32_issue_factor: int = 1

    @property
    def most_power_w(self) -> float | None:
        """The highest power limit that the board can be set to [W], if known."""
        return self.max_power_limit_w or self.tdp_w

    @property
    def default_power_w(self) -> float | None:
        """The board's default power limit [W], if known."""
        limits = [limit for limit in (self.tdp_w, self.most_power_w) if limit is not None]
        return min(limits, default=None)

    @property
    def lowest_cap_w(self) -> float | None:
        """The lowest power limit that it accepts [W]; None if never verified."""
        return None if "min_power_limit_w" in self.unverified else self.min_power_limit_w

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
        """DRAM bytes as a share of what the bus can transfer in that time at that memory clock."""
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
        """By field of the data sheet the peak computed at its clocks, and the printed one."""
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
        MHz lists 135, 142, 150, … The highest of the range is one of them. AMD's clocks far above
        the rated one are left out: its driver accepts them, but they never run. Empty if range or
        step is not known.
        """
        if self.engine_clock_range_mhz is None or self.engine_clock_step_mhz is None:
            return ()
        low, high = self.engine_clock_range_mhz
        if self.vendor == "AMD" and self.datasheet is not None:
            high = min(high, ABOVE_RATED * self.datasheet.engine_mhz)
        clocks = _multiples_mhz(low, high, self.engine_clock_step_mhz)
        highest = float(math.floor(high))
        return clocks if clocks[-1] == highest else (*clocks, highest)

    def listed_mhz(self, clock: str) -> tuple[float, ...]:
        """Of 'engine_mhz' the ends of its range, of 'memory_mhz' all that the vendor's tool lists.

        Empty if they are not known.
        """
        is_memory = clock == "memory_mhz"
        return self.memory_clocks_mhz() if is_memory else self.engine_clock_range_mhz or ()

    def highest_mhz(self, clock: str) -> float | None:
        """The highest known 'engine_mhz' or 'memory_mhz' [MHz], None if unknown.

        A data sheet's engine clock may be exceeded, so it counts only for the memory.
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
        """The memory clock under load, if it is known without the user giving it.

        It is the only one, or the highest of a GPU that chooses by itself.
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

        Of AMD's GPUs, only those of CDNA 3 and 4 have several.
        """
        has_one = self.vendor == "AMD" and bool(self.architecture)
        has_one = has_one and not self.architecture.startswith((*CDNA, "gfx9"))
        return 1 if self.xcd_count is None and has_one else self.xcd_count

    @property
    def defers_memory_clock(self) -> bool:
        """Whether its memory clock changes only as the driver is loaded anew: NVIDIA's Hopper.

        Source: nvidia-smi(1), https://docs.nvidia.com/deploy/nvidia-smi/, of --lock-memory-clocks.
        """
        return self.architecture.startswith("Hopper")

    @property
    def slows_at_locked_memory(self) -> bool:
        """Whether locking its memory clock costs speed: 10 to 32 % on GeForce RTX 50.

        Measured on RTX 5090s: github NVIDIA/open-gpu-kernel-modules, issues 1265 and 1266.
        """
        return self.is_consumer and self.architecture.startswith("Blackwell")

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
        """The device from what as_dict gave. Raises InputError on anything else."""
        device = _checked_fields(cls, values, "device")
        if device["datasheet"] is not None:
            sheet = _checked_fields(Datasheet, device["datasheet"], "datasheet")
            device["datasheet"] = Datasheet(**sheet)
        return cls(**device)


def _multiples_mhz(lowest: float, highest: float, step: float) -> tuple[float, ...]:
    """The multiples of a step from the lowest to the highest clock, rounded down [MHz]."""
    numbers = range(math.floor(lowest / step), math.floor((highest + 1) / step) + 1)
    clocks = (float(math.floor(number * step)) for number in numbers)
    return tuple(clock for clock in clocks if lowest <= clock <= highest)


def _checked_fields(cls: type, values: object, what: str) -> dict[str, Any]:
    """The fields of a dataclass, each of its kind. Raises InputError with all faults at once."""
    if not isinstance(values, Mapping):
        raise InputError(f"the {what} must be a table of fields, not {type(values).__name__}")
    kinds: dict[str, Any] = {field.name: field.type for field in fields(cls)}
    required = {field.name for field in fields(cls) if field.default is MISSING}
    faults = []
    if missing := required - values.keys():
        faults.append(f"the {what} lacks {', '.join(sorted(missing))}")
    if unknown := values.keys() - kinds:
        faults.append(f"the {what} has unknown {', '.join(sorted(map(ascii, unknown)))}")
    for name, value in values.items():
        if (must := _misfit(kinds.get(name), value)) is not None:
            faults.append(f"{name} of the {what} must be {must}, not {ascii(value)[:40]}")
    if faults:
        raise InputError("; ".join(faults))
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


_KINDS: dict[Any, str] = {  # what a field of a type must be
    str: "text",
    int: "a positive whole number",
    float: "a positive number",
    tuple[str, ...]: "a list of text",
    tuple[float, ...]: "a list of positive numbers",
    tuple[float, float]: "a list of the lowest and the highest, positive numbers",
}


def _misfit(kind: Any, value: Any) -> str | None:
    """What a field of that type must be, if the value is something else."""
    if isinstance(kind, UnionType):  # with None
        kind = None if value is None else get_args(kind)[0]
    return None if kind not in _KINDS or _fits(kind, value) else _KINDS[kind]


def _fits(kind: Any, value: Any) -> bool:
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            return False
        is_range = get_args(kind)[1] is float
        has_ends = not is_range or len(value) == 2
        return (
            has_ends
            and all(_fits(get_args(kind)[0], one) for one in value)
            and (not is_range or value[0] <= value[1])
        )
    if kind is str:
        return isinstance(value, str)
    is_number = isinstance(value, int if kind is int else int | float)
    return is_number and not isinstance(value, bool) and 0 < value < math.inf


# Words that tools print or leave out as they like.
_BRANDS = {"nvidia", "geforce", "tesla", "quadro", "amd", "radeon", "instinct", "tm"}
_MIG = re.compile(r"\s+MIG\s.*", re.IGNORECASE)
_PCI_OF_NVML = re.compile(r"0x([0-9a-f]{4})(10de)", re.IGNORECASE)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*")  # how a device file calls its GPU
_SHEET_TOLERANCE = 0.05  # share of a peak; the table's sheets round by up to 2.5 %
# What a device file may leave out although every device has it.
_FILE_DEFAULTS: dict[str, Any] = {
    "vendor": "unknown",
    "architecture": "unknown",
    "datasheet": None,
    "note": "",
}


def device_keys() -> tuple[str, ...]:
    """The keys of all devices in the table, and of your own ones."""
    return tuple(_table())


def shipped_keys() -> tuple[str, ...]:
    """The keys of the devices that mlscale brings along."""
    return tuple(_shipped())


@functools.cache
def load_device(key: str) -> Device:
    """The device of that key. Raises InputError if there is none."""
    table = _table()
    if key not in table:
        from difflib import get_close_matches

        close = devices_named(key) or get_close_matches(key.lower(), table, n=1)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(
            f"there is no device {key!r}; {hint}'mlscale devices list' names those of the table, "
            f"and a device file describes another ('{command('devices show', 'help')}')"
        )
    return Device.from_dict({"key": key, **table[key]})


def devices_matching(pattern: str | None = None) -> list[Device]:
    """The devices with that part in a key, a name or an alias, or all. Raises InputError."""

    def bare(name: str) -> str:
        return "".join(filter(str.isalnum, name.casefold()))

    part = bare(pattern or "")
    devices = [
        device
        for device in map(load_device, device_keys())
        if any(part in bare(name) for name in (device.key, device.name, *device.aliases))
    ]
    if not devices:
        raise InputError(
            f"no GPU of the table matches '{pattern}'{did_you_mean(str(pattern), device_keys())}; "
            "'mlscale devices list' names all"
        )
    return devices


def known_device(key: str) -> Device | None:
    """The device of that key; None if the table has none."""
    return load_device(key) if key in device_keys() else None


def find_device(name: str, cu_count: float | None = None) -> Device | None:
    """The device of a key or of a name as a tool prints it; None if none or several match.

    name: in upper or lower case, with or without 'NVIDIA': what nvidia-smi, CUDA, DCGM and the
    profilers print, AMD's marketing name, or PCI ids ('10de:2330', NVML's '0x233010DE'). A name
    shared by several GPUs (gfx90a, A100) needs the number of compute units to decide.

    Example:
        find_device("NVIDIA H100 80GB HBM3"), find_device("gfx942", cu_count=228)
    """
    keys, are_shared = _bearers(name, cu_count)
    if len(keys) != 1 or (are_shared and cu_count is None):
        return None
    return load_device(keys[0])


def key_or_name(text: str) -> str:
    """The key of the GPU that a user names; an unknown name is kept. Raises InputError.

    text: a key or another name of the device table, or a device file, which is registered.
    """
    device = load_device_file(text) if text.endswith(".json") else find_device(text)
    return text if device is None else device.key


def devices_named(name: str, cu_count: float | None = None) -> tuple[str, ...]:
    """The keys of the devices that a name may mean.

    cu_count: of the whole device, which distinguishes AMD's gfx names and families.
    """
    return _bearers(name, cu_count)[0]


def _bearers(name: str, cu_count: float | None) -> tuple[tuple[str, ...], bool]:
    """The devices that bear a name, and whether it is one that others may bear too."""
    if name in _table():
        return (name,), False
    by_alias, by_shared_name = _names()
    plain = _plain(_PCI_OF_NVML.sub(r"\2:\1", _MIG.sub("", name)))
    are_shared = plain not in by_alias
    keys = (by_shared_name if are_shared else by_alias).get(plain, ())
    if cu_count is not None and (are_shared or len(keys) > 1):
        keys = tuple(key for key in keys if _table()[key]["cu_count"] == cu_count)
    return keys, are_shared


def _plain(name: str) -> str:
    """A name without case, punctuation and brands."""
    words = re.findall("[a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in _BRANDS)


@functools.cache
def _names() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """By plain name the devices that bear it alone, and those that share it with others.

    A device of your own takes its names away from the table's.
    """
    by_alias: dict[str, tuple[str, ...]] = {}
    by_shared_name: dict[str, tuple[str, ...]] = {}
    for key, entry in _table().items():
        aliases = [key, entry["name"], *entry.get("aliases", ()), *entry.get("pci_ids", ())]
        for plain in dict.fromkeys(map(_plain, aliases)):
            others = () if key in _registered else by_alias.get(plain, ())
            by_alias[plain] = (*others, key)
        for plain in dict.fromkeys(map(_plain, entry.get("shared_names", ()))):
            by_shared_name[plain] = (*by_shared_name.get(plain, ()), key)
    return by_alias, by_shared_name


_registered: dict[str, dict[str, Any]] = {}  # the devices of your own, in this process


def register_device(device: Device) -> None:
    """Register a device by its key in this process; one of the shipped table stays unchanged.

    Raises InputError if the key was registered with other facts.
    """
    entry = device.as_dict()
    key = device.key
    del entry["key"]
    if key in _shipped():
        return
    before = _registered.get(key, entry)
    if before != entry:
        differing = [f for f in before.keys() | entry if before.get(f) != entry.get(f)]
        raise InputError(
            f"device '{key}' is described in two ways, which differ in "
            f"{', '.join(sorted(differing))}; use one device file for all tables and models"
        )
    _registered[key] = entry
    for lookup in (_table, _names, load_device):
        lookup.cache_clear()


def load_device_file(path: Path | str) -> Device:
    """Read a device file and register its device by its key in this process.

    The file is a JSON object with the fields of Device. Those that peaks need are required;
    `name` defaults to the key. `sources`, from field to text, is for readers. Raises InputError,
    one line with everything missing or wrong; warns if its data sheet has other peaks than those
    that follow from its fields.

    Example:
        device = load_device_file("my-gpu.json")
        imported = mlscale.import_profile("export.csv", device=device.key)
    """
    path = Path(path)
    values = parse_json_object(read_bytes(path), str(path))
    key = values.get("key")
    if key in shipped_keys():
        raise InputError(f"{path}: key '{key}' is in the device table; give yours another key")
    try:
        device = _described(values)
    except InputError as error:
        raise InputError(
            f"{path}: {error}; '{command('devices show h100-sxm5', 'json')}' prints an entry to "
            f"start from, and '{command('devices show h100-sxm5')}' what each field is"
        ) from None
    if not _KEY.fullmatch(device.key):
        raise InputError(
            f"{path}: key '{device.key}' must be lower-case letters, digits, '.', '-' and '_'"
        )
    register_device(device)
    for name, (derived, printed) in device.derived_and_printed().items():
        if abs(derived / printed - 1) > _SHEET_TOLERANCE:
            warn(
                "G01",
                f"{path}: {name} of the data sheet is {printed:g}, but {derived:.6g} follows from "
                "the other fields, which predictions use: one of these numbers is wrong",
            )
    return device


def registered_devices() -> tuple[Device, ...]:
    """The devices that were registered in this process."""
    return tuple(map(load_device, _registered))


def _described(values: Any) -> Device:
    """The device that a device file, or the metadata of a table, describes. Raises InputError."""
    if isinstance(values, Mapping):
        values = {"name": values.get("key"), **_FILE_DEFAULTS, **values}
        values.pop("sources", None)
    return Device.from_dict(values)


def register_facts(metadata: Mapping[str, Any], source: str) -> None:
    """Register your own device whose facts a table or a model carries, if it has any.

    Raises InputError, naming the source, on damaged facts.
    """
    if "device_facts" in metadata:
        try:
            register_device(_described(metadata["device_facts"]))
        except InputError as error:
            raise InputError(f"{source}: device_facts: {error}") from None


def facts_to_carry(key: str) -> dict[str, Any]:
    """What the metadata of a table of that device must contain: the facts of your own device."""
    return {"device_facts": load_device(key).as_dict()} if key in _registered else {}


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    return {**_shipped(), **_registered}


@functools.cache
def _shipped() -> dict[str, dict[str, Any]]:
    devices: dict[str, dict[str, Any]] = shipped_json(__file__, "devices.json")["devices"]
    return devices


@functools.cache
def device_sources(key: str) -> dict[str, tuple[str, ...]]:
    """By field of a device in the shipped table: the source of its number, in full."""
    document = shipped_json(__file__, "devices_sources.json")
    return {
        name: tuple(document["sources"][source] for source in sources)
        for name, sources in document["devices"].get(key, {}).items()
    }
