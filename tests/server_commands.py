"""Commands on readings of a made server, and their answers as JSON."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from command import Cli
from synthetic import llm_server as made

SCHEMA = Path(__file__).parents[1] / "mlscale/advice/schema.json"
SERVER, HIGH, LOW, RATE, COUNT = made.Server(), 1980.0, 1320.0, 5.0, 400
Words = list[str]


def write(folder: Path, rate: float = RATE, **options: Any) -> Words:
    """The words of a command on two readings."""
    pairs = []
    for seed, mhz in enumerate((HIGH, LOW)):
        run = made.serve(
            SERVER, mhz, rate, options.get("count", COUNT), options.get("clients"), seed
        )
        pairs.append(made.write(run, mhz, folder, options.get("is_detailed", True)))
    (fast, log), (slow, slow_log) = pairs
    return ["advise", str(fast), str(log), "--also", str(slow), str(slow_log)]


def document(cli: Cli, *words: str) -> dict[str, Any]:
    """The answer as JSON, which must fit the schema."""
    found: dict[str, Any] = cli.json(*words)
    jsonschema.validate(found, json.loads(SCHEMA.read_text("utf-8")))
    return found
