"""datasets list, show and fetch on the command line, against the registry."""

import hashlib
from pathlib import Path

import pytest
from command import Cli

from mlscale.data.datasets import all_datasets, public_datasets

P100 = "p100-dvfs-real-Performance-Power.csv"


@pytest.fixture(autouse=True)
def _nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLSCALE_DATA", raising=False)
    monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))


def test_list_says_where_each_set_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, data_folder: Path
) -> None:
    monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
    out, err = cli.both("datasets", "list")
    lines = {line.split()[0]: line for line in out.splitlines()[1:-2]}
    assert lines.keys() == all_datasets().keys()
    assert lines["p100"].split() == ["p100", "p100", "30", "1x5x1", "48", "yes", "yes"]
    assert lines["rtx2070s"].split()[2:4] == ["-", "-"]
    assert lines["titanx"].endswith(" -")
    assert lines["simulated-gcn3"].split()[-2:] == ["no", "shipped"]
    assert err == ""


def test_a_damaged_file_is_not_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / P100).write_text("damaged")
    out, err = cli.both("datasets", "list")
    assert out.splitlines()[5].split()[:1] + out.splitlines()[5].split()[-1:] == ["p100", "-"]
    assert f"{tmp_path}/cache/{P100}: is not 'p100', its checksum differs" in err


def test_show_of_several_and_of_another_name(cli: Cli) -> None:
    shown, simulated = cli("datasets", "show", "gtx1080ti", "simulated-gcn3").split("\n\n")
    assert public_datasets()["gtx1080ti"].sha256 in shown
    assert "URL" not in simulated
    message = cli.refused("datasets", "show", "p10")
    assert message.startswith("there is no data set 'p10'; available: wang-chu-gtx980, ")
    assert message.endswith("; is 'p100' meant?")


def test_fetch_names_what_is_here(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, data_folder: Path
) -> None:
    monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
    names = ["p100", "wang-chu-gtx980", "simulated-gcn3"]
    out, err = cli.both("datasets", "fetch", *names)
    lines = dict(line.split(": ") for line in out.splitlines())
    assert list(lines) == names
    for name in names[:2]:
        content = Path(lines[name]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == public_datasets()[name].sha256
    assert err == ""
