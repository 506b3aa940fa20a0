"""A study on a Dask cluster of two worker processes of which one is killed on the way."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, study_files, succeed, when_kept
from dask_cluster import workers
from synthetic import kernels as made

from mlscale import ConfigGrid
from mlscale.cli.main import main
from mlscale.progress import PROGRESS
from mlscale.studies import parallel

STUDY = ("study", "errors", "--quantity", "time", "--seeds", "1")
pytestmark = pytest.mark.filterwarnings("ignore")  # killed workers warn


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    grid = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
    made.measurements(per_group=2, grid=grid).write(path)
    return path


@pytest.fixture
def cluster() -> Iterator[Any]:
    with workers() as cluster:
        yield cluster


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(
    capsys: Capture, table: Path, tmp_path: Path, cluster: Any
) -> None:
    killed: list[int] = []

    def kill() -> None:
        killed.append(next(iter(cluster.workers.values())).pid)
        os.kill(killed[0], signal.SIGKILL)

    with when_kept(3, kill):
        spread = tmp_path / "spread"
        succeed(capsys, *STUDY, table, "--dask", cluster.scheduler_address, "-o", spread)
    assert len(killed) == 1
    succeed(capsys, *STUDY, table, "-o", tmp_path / "alone")
    assert study_files(spread) == study_files(tmp_path / "alone")


@pytest.mark.slow
def test_a_lost_cluster_is_one_line_and_what_is_done_is_kept(
    capsys: Capture, table: Path, tmp_path: Path, cluster: Any
) -> None:
    address, output = cluster.scheduler_address, tmp_path / "lost"
    with when_kept(3, cluster.close):
        assert main([*STUDY, str(table), "--dask", address, "-o", str(output)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mlscale: error: the Dask cluster at {address} lost all its workers")
    assert error.count("\n") == 1
    assert len((output / PROGRESS).read_text().splitlines()) >= 1 + 3
    succeed(capsys, *STUDY, table, "-o", output, "--resume")
    succeed(capsys, *STUDY, table, "-o", tmp_path / "alone")
    assert study_files(output) == study_files(tmp_path / "alone")


def test_a_scheduler_without_workers(capsys: Capture, table: Path, tmp_path: Path) -> None:
    with workers(0) as empty:
        address = empty.scheduler_address
        message = refuse(capsys, tmp_path, *STUDY, table, "--dask", address, "-o", tmp_path / "o")
    assert message.startswith(f"the scheduler at {address} has no worker; start one with: dask wor")


@pytest.fixture(params=[None, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def listener(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of something that is not Dask: it says nothing, or is a dashboard."""
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            connection.sendall(request.param)
            connection.close()

        if request.param is not None:
            threading.Thread(target=answer, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_what_is_not_dask_is_refused_in_time(
    capsys: Capture, table: Path, tmp_path: Path, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "SECONDS_TO_CONNECT", 0.5)
    for address in (listener, "somewhere"):
        message = refuse(capsys, tmp_path, *STUDY, table, "--dask", address)
        assert message.startswith(f"no Dask scheduler answers at {address}; start one with 'dask s")
