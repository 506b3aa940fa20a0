"""A device of one's own: a JSON file with the fields of a device, checked and made known."""

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from mlscale.data.device import Device
from mlscale.data.devices import register_device, shipped_keys
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes

# What a device file may leave out although every device has it.
DEFAULTS: dict[str, Any] = {
    "vendor": "unknown",
    "architecture": "unknown",
    "datasheet": None,
    "note": "",
}
REQUIRED = tuple(
    field.name
    for field in fields(Device)
    if field.default is MISSING and field.name not in {"name", *DEFAULTS}
)
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*")


def load_device_file(path: Path | str) -> Device:
    """Read a device file and make its device known by its key in this process.

    The file is a JSON object with the fields of Device. Those that peaks need are required
    (REQUIRED); `name` is the key, where it is left out. `sources`, from field to text, is for
    readers. Raises InputError, one line with all that is missing or wrong.

    Example:
        device = load_device_file("my-gpu.json")
        imported = mlscale.import_profile("export.csv", device=device.key)
    """
    path = Path(path)
    values = parse_json_object(read_bytes(path), str(path))
    values.pop("sources", None)
    key = values.get("key")
    if key in shipped_keys():
        raise InputError(f"{path}: key '{key}' is in the device table; give yours another key")
    try:
        device = Device.from_dict({"name": key, **DEFAULTS, **values})
    except InputError as error:
        raise InputError(
            f"{path}: {error}; docs/devices.md says what each field is, 'mlscale devices show KEY "
            "--format json' prints an entry to start from"
        ) from None
    if not _KEY.fullmatch(device.key):
        raise InputError(
            f"{path}: key '{device.key}' must be small letters, digits, '.', '-' and '_'"
        )
    register_device(device)
    return device
