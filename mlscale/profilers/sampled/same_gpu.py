"""Whether a monitor's log can be of the GPU that a table, or the user, names."""

from collections.abc import Collection

from mlscale.data.device_table import devices_named, find_device, shipped_keys
from mlscale.data.plausibility import check_unit
from mlscale.errors import InputError, warn
from mlscale.profilers.sampled.busy import BusySpan
from mlscale.profilers.sampled.formats import OWN_SCRIPT, LogFormat
from mlscale.profilers.sampled.log import SampledLog

_VENDORS = {  # whose GPUs each tool can watch; every tool has one maker
    **dict.fromkeys(("dcgm", "nvidia-smi"), "NVIDIA"),
    **dict.fromkeys(("rocm-smi", "amd-smi"), "AMD"),
}


def check_tool(source: str, form: LogFormat, gpu: str) -> None:
    """Raise InputError where the tool that wrote a log cannot watch the GPU of that name.

    Of a GPU that the device table lacks nothing is known, unless its device file says the maker;
    a script of one's own watches any.
    """
    device, tool = find_device(gpu), form.tool
    if device is None or form is OWN_SCRIPT:
        return
    is_shipped = device.key in shipped_keys()
    watched, watches = _VENDORS[tool], f"GPUs of {_VENDORS[tool]}"
    cannot = device.vendor != watched and (is_shipped or device.vendor in _VENDORS.values())
    if cannot:
        raise InputError(
            f"{source}: is of {tool}, which watches {watches} alone, and '{device.key}' is none; "
            "give a log of the same GPU"
        )


def check_same_gpu(log: SampledLog, form: LogFormat, span: BusySpan, keys: Collection[str]) -> None:
    """Raise InputError where a log cannot be of any GPU of a table; warn where its name is unknown.

    keys: the table's devices; none where it names none.
    """
    possible = devices_named(log.name) if log.name else ()
    named = ", ".join(sorted(keys))
    if keys and possible and not set(keys) & set(possible):
        raise InputError(f"{log}: is of '{log.name}', the profile of '{named}'")
    for key in keys:
        check_tool(str(log), form, key)
        for clock in ("engine_mhz", "memory_mhz"):
            if log.has(clock):
                mean_mhz = span.working_mean(log.columns[clock])
                check_unit(f"{log}: {clock}", key, clock, mean_mhz)
    if log.name and not possible and any(find_device(key) for key in keys):
        warn(f"{log}: is of '{log.name}', which is not in the device table; taken for '{named}'")
