"""docs/howto/measure.md shows what its commands print on the made GPU (`synthetic/nvml.py`).

Its program works for 412 samples at the free clock; how long it is idle before and after depends on
this machine, and is left out. So are notes, which the page leaves out.
"""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from command import Capture
from synthetic import nvml
from synthetic.made_gpu import MadeGpu

from mlscale.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "measure.md").read_text(encoding="utf-8")
BLOCKS = "".join(re.findall(r"^```text\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))
RUNS = re.split(r"^(?=(?:sudo )?mlscale )", BLOCKS, flags=re.MULTILINE)[1:]
SHOWN = [run.partition("\n") for run in RUNS]
SPECIAL = {"--for": {"serves": True}}


def compared(text: str) -> str:
    return re.sub(r"busy of [\d.]+ s|[\d.]+ s at|:\s+\d+%", "…", text)


@pytest.mark.parametrize(("command", "_", "text"), SHOWN)
def test_the_page_shows_what_is_printed(
    gpu: MadeGpu, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: str, _: str, text: str
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    Path("train.py").write_text(
        f"import subprocess\nsubprocess.run(['sh', '-c', '''{nvml.PROGRAM}'''], stdout=-3)\n"
    )
    words = shlex.split(command.removeprefix("sudo "))[1:]
    special = next((what for option, what in SPECIAL.items() if option in words), {})
    gpu.special(work=412, **special)
    main(words)
    out, err = capsys.readouterr()
    printed = re.sub(r"^mlscale: note .*\n", "", err, flags=re.MULTILINE) + out
    assert compared(printed) == compared(text)
