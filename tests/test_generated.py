"""Parts of the reference that the site's build makes: they name all that the package has."""

import json
import re

import generated
from command import Cli, keys

from mlscale.cli.main import COMMANDS
from mlscale.data.datasets import all_datasets
from mlscale.data.devices import device_keys


def test_every_command_has_its_help() -> None:
    headings = re.findall(r"^## mlscale (\S+)", generated.commands(), flags=re.MULTILINE)
    assert set(headings) == set(COMMANDS)


def test_every_gpu_is_in_the_table() -> None:
    assert re.findall(r"^\| `(.*?)`", generated.gpus(), flags=re.MULTILINE) == sorted(device_keys())


def test_every_data_set_is_in_the_table() -> None:
    assert re.findall(r"^\| `(.*?)`", generated.datasets(), flags=re.MULTILINE) == list(
        all_datasets()
    )


def test_every_key_of_an_answer_is_explained(cli: Cli) -> None:
    words = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
    document = cli("advise", *words, "--json")
    explained = re.findall(r"^\| `(?:.*\.)?(\w+)` \|", generated.answer(), flags=re.MULTILINE)
    assert set(keys(json.loads(document))) <= set(explained)


def test_words_for_the_search() -> None:
    """By hand: main entries, which Sphinx' search puts above pages that only have the words."""
    page = "<!-- index: lock clocks, power limit -->\n\n## Power limit\n"
    entries = "```{index} ! lock clocks, ! power limit\n```"
    assert generated.filled(page) == f"{entries}\n\n## Power limit\n"
