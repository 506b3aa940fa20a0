"""mlscale completion: the scripts hold every command, and bash completes with them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command import Cli

from mlscale.cli.main import COMMANDS

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def script(cli: Cli, tmp_path: Path) -> Path:
    """The script for bash, in a file."""
    path = tmp_path / "mlscale.bash"
    path.write_text(cli("completion", "bash"))
    return path


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words after `mlscale`."""
    line = " ".join(f"'{word}'" for word in ("mlscale", *words))
    code = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        "$(complete -p mlscale | sed 's/.*-F \\([^ ]*\\).*/\\1/') 2>/dev/null; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, check=True, cwd=script.parent
    )
    return {word.strip() for word in done.stdout.splitlines()}


@bash
def test_bash_completes(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)
    assert completed(script, "") >= set(COMMANDS)
    assert completed(script, "pre") == {"predict"}
    assert completed(script, "predict", "--form") == {"--format"}
    assert "csv" in completed(script, "predict", "--format", "")
    assert completed(script, "datasets", "fe") == {"fetch"}
    (script.parent / "gpu.mlscale").touch()
    (script.parent / "folder").mkdir()
    before = ([], ["m", "p", "-o"], ["p", "--also"], ["p", "--power"], ["p", "--peaks"])
    for words in (["predict", *first, "gp"] for first in before):
        assert completed(script, *words) == {"gpu.mlscale"}
    assert "gpu.mlscale" not in completed(script, "demo", "-o", "")
    assert completed(script, "demo", "-o", "fol") == {"folder"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_every_script_names_every_command(cli: Cli, shell: str) -> None:
    text, err = cli.both("completion", shell)
    assert err == ""
    assert [command for command in COMMANDS if command not in text] == []
