"""mlscale completion: the scripts hold every command, and bash completes with them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.cli.main import COMMANDS

bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def script(capsys: Capture, tmp_path: Path) -> Path:
    """The script for bash, in a file."""
    path = tmp_path / "mlscale.bash"
    path.write_text(succeed(capsys, "completion", "bash")[0])
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
class TestBash:
    def test_accepts_the_script(self, script: Path) -> None:
        subprocess.run(["bash", "-n", script], check=True)

    def test_completes_the_commands(self, script: Path) -> None:
        assert completed(script, "") >= set(COMMANDS)
        assert completed(script, "pre") == {"predict"}

    def test_completes_options_and_choices(self, script: Path) -> None:
        assert completed(script, "predict", "--form") == {"--format"}
        assert "csv" in completed(script, "predict", "--format", "")
        assert completed(script, "datasets", "fe") == {"fetch"}

    def test_completes_files_where_files_are_meant(self, script: Path) -> None:
        (script.parent / "gpu.mlscale").touch()
        (script.parent / "folder").mkdir()
        before = ([], ["m", "p", "-o"], ["p", "--also"], ["p", "--power"], ["p", "--peaks"])
        for words in (["predict", *of, "gp"] for of in before):
            assert completed(script, *words) == {"gpu.mlscale"}
        assert "gpu.mlscale" not in completed(script, "demo", "-o", "")
        assert completed(script, "demo", "-o", "fol") == {"folder"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_every_script_names_every_command(capsys: Capture, shell: str) -> None:
    text, err = succeed(capsys, "completion", shell)
    assert err == ""
    assert [command for command in COMMANDS if command not in text] == []


def test_another_shell_is_refused(capsys: Capture, tmp_path: Path) -> None:
    message = refuse(capsys, tmp_path, "completion", "cmd")
    assert message.endswith("see 'mlscale completion --help'")
