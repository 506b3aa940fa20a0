"""Commands attacked: where they write, what they connect to, how much, and with what around."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from reliability_processes import cluster
from reliability_trials import Attacks, Faults, Files, begun, ended, tried
from synthetic import bottleneck_kernels as curved
from synthetic import kernels as made

from mlscale import ConfigGrid
from mlscale.data.public import path as shipped
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table

LARGE = ConfigGrid(tuple(range(1, 65)), tuple(range(500, 540)), tuple(range(400, 440)))
WIDE = ConfigGrid((16,), tuple(np.linspace(500, 1500, 160)), tuple(np.linspace(1000, 4000, 100)))
EXPORT = shipped("h100-by-hand.csv")
STUDY = ("study", "errors", "--predictor", "nearest", "--quantity", "time", "--seeds", "1")
DASK_S = 30.0  # ten and the time to begin, on a machine that does other work too


def attacks(files: Files, _trials: int, _seed: int) -> Attacks:
    """By name."""
    places = ("a link", "a stream", "a link to a stream", "a pipe", "nothing")
    return {
        "output onto a link, a stream or a pipe": [partial(_onto, files, p) for p in places],
        "output onto what is read": [
            partial(_onto_input, files, command, way)
            for command in ("train", "import", "predict", "report")
            for way in ("itself", "a link", "a hard link", "another spelling")
        ] + [partial(_onto_model, files)],
        "--dask with what is no cluster": [partial(_dask, files, name) for name in LISTENERS],
        "10 000, then 40 000 kernels": [partial(_many_kernels, files)],
        "16 000 configurations with --also": [partial(_also, files, w) for w in ALSO],
        "a grid of 102 400 configurations": [partial(_large_grid, files.folder)],
        "closed and broken streams": [partial(_streams, files.profile, c) for c in CLOSED],
        "what surrounds a command": [partial(attack, files) for attack in AROUND],
    }  # fmt: skip


def _onto(files: Files, place: str) -> Faults:
    """What stands there before stays, as far as it should, and what is written arrives."""
    folder = files.folder / place.replace(" ", "-")
    folder.mkdir()
    target, output, log = folder / "target", folder / "out.csv", folder / "log"
    target.write_text("old")
    words = ("import", EXPORT, "-o")
    if place == "nothing":
        return tried(*words, "/dev/null") + ([] if Path("/dev/null").is_char_device() else ["gone"])
    if place == "a pipe":
        os.mkfifo(output)
        with subprocess.Popen(["cat", output], stdout=subprocess.PIPE) as reader:
            faults = tried(*words, output, expected={0})
            content = reader.communicate()[0]
        return faults + ([] if output.is_fifo() and b"triad" in content else ["not written"])
    if place == "a link":
        output.symlink_to(target)
        faults = tried(*words, output, expected={0})
        followed = output.is_symlink() and "triad" in target.read_text()
        return faults + ([] if followed else ["the link is not followed"])
    if place == "a link to a stream":
        output.symlink_to("/dev/stdout")
    with log.open("w") as file:
        file.write("before\n")
        file.flush()
        status, said = ended(begun(*words, "/dev/stdout" if place == "a stream" else output,
                                   stdout=file))  # fmt: skip
    text = log.read_text()
    is_whole = status == 0 and text.startswith("before\n") and "triad" in text
    return [] if is_whole else [f"{place}: {said[-200:]!a}, {text[:40]!a}"]


def _onto_input(files: Files, command: str, way: str) -> Faults:
    """It is refused, and what is read stays as it is."""
    original = EXPORT if command == "import" else files.table
    source = files.folder / f"{command}-{way.replace(' ', '-')}.csv"
    source.write_bytes(original.read_bytes())
    output = source.with_name(f"other-{source.name}")
    if way == "itself":
        output = source
    elif way == "a link":
        output.symlink_to(source)
    elif way == "a hard link":
        output.hardlink_to(source)
    else:
        output = files.folder / ".." / files.folder.name / source.name
    words = {
        "train": ("train", source, "--base", "mid"),
        "import": ("import", source),
        "predict": ("predict", source, "--model", files.model, "--format", "csv"),
        "report": ("report", source, "--model", files.model),
    }[command]
    faults = tried(*words, "-o", output, expected={2})
    is_same = source.read_bytes() == original.read_bytes()
    return faults + ([] if is_same else [f"{command} onto {way} replaces what it reads"])


def _onto_model(files: Files) -> Faults:
    before = files.model.read_bytes()
    words = ("predict", files.profile, "--model", files.model, "--format", "csv")
    faults = tried(*words, "-o", files.model, expected={2})
    return faults + ([] if files.model.read_bytes() == before else ["the model is replaced"])


@contextmanager
def _listening(answer: bytes | None, scheme: str = "tcp") -> Iterator[str]:
    """A listener that sends these bytes to whoever connects, or is silent; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as connections:

        def accept() -> None:
            while True:
                try:
                    connection = connections.enter_context(server.accept()[0])
                    if answer:
                        connection.sendall(answer)
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def _not_accepting() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def _stopped_scheduler() -> Iterator[str]:
    with cluster(workers=()) as (address, parts):
        parts["scheduler"].send_signal(signal.SIGSTOP)
        yield address


@contextmanager
def _said(address: str) -> Iterator[str]:
    yield address


HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
LISTENERS: dict[str, Callable[[], "contextmanager[str]"]] = {  # type: ignore[type-arg]
    "silent": partial(_listening, None),
    "never accepts": _not_accepting,
    "HTTP": partial(_listening, HTTP),
    "zeros": partial(_listening, bytes(4096)),
    "a length of 2^63": partial(_listening, b"\xff" * 7 + b"\x7f" + b"x" * 64),
    "a stopped scheduler": _stopped_scheduler,
    "tls:// of a silent socket": partial(_listening, None, "tls"),
    "tls:// of another protocol": partial(_listening, HTTP, "tls"),
    "nobody": partial(_said, "tcp://127.0.0.1:9"),
    "tls:// of nobody": partial(_said, "tls://127.0.0.1:9"),
    "no address": partial(_said, "foo"),
    "another protocol": partial(_said, "http://127.0.0.1:9"),
    "inproc": partial(_said, "inproc://1"),
    "half an address": partial(_said, "tcp://[::1"),
}


def _dask(files: Files, name: str) -> Faults:
    with LISTENERS[name]() as address:
        words = (*STUDY, files.table, "--dask", address)
        faults = tried(*words, "-o", files.folder / "dask", expected={2}, wall_s=DASK_S)
    return [f"{name}: {fault}" for fault in faults]


def _kernels(files: Files, count: int) -> Path:
    """The profile over and over, each row a kernel of its own."""
    table = read_table(files.profile)
    rows = np.arange(count) % len(table)
    many = table.select(rows.tolist())
    many.text["kernel"] = [f"k{n}" for n in range(count)]
    many.text["application"] = [f"a{n}" for n in range(count)]
    path = files.folder / f"{count}.parquet"
    write_table(Table(many.source, many.text, many.numbers, many.metadata), path)
    return path


def _many_kernels(files: Files) -> Faults:
    """Four times as many may take four times as long, and no more than ten seconds."""
    faults = []
    for count in (10_000, 40_000):
        words = ("predict", _kernels(files, count), "--model", files.model, "-o")
        faults += tried(*words, files.folder / f"{count}-out.parquet", expected={0})
        faults += tried(*words, files.folder / f"{count}-out.csv", expected={0}, processor_s=20)
    return faults


ALSO = {
    "predict": ("-o", "{}"),
    "advise": ("--format", "json"),
    "advise for the next profile": ("--next-profile",),
}


def _also(files: Files, how: str) -> Faults:
    table, model = files.folder / "wide.parquet", files.folder / "wide.mlscale"
    if not table.exists():
        every = curved.measurements(4, grid=WIDE)
        every.write(table)
        train = ("train", table, "--base", "highest", "--predictor", "bottleneck", "-o", model)
        if faults := tried(*train, expected={0}, processor_s=240, wall_s=600, mebibytes=4096):
            return faults
        rows = read_table(table)
        at_base = [n for n in range(len(rows)) if (rows.numbers["engine_mhz"][n], rows.numbers[
            "memory_mhz"][n]) == (1500, 4000)]  # fmt: skip
        write_table(rows.select(at_base), files.folder / "wide-profile.parquet")
    options = [str(files.folder / "wide-out.parquet") if w == "{}" else w for w in ALSO[how]]
    words = (how.split(maxsplit=1)[0], files.folder / "wide-profile.parquet", "--model", model)
    return tried(*words, "--also", table, *options, expected={2}, processor_s=30, wall_s=300)


def _large_grid(folder: Path) -> Faults:
    """Train on it, predict, and ask for a report, which has no place for it."""
    table, model = folder / "large.parquet", folder / "large.mlscale"
    made.measurements(per_group=1, grid=LARGE).write(table)
    train = ("train", table, "--base", "mid", "--predictor", "nearest", "-o", model)
    page = ("report", table, "--model", model, "-o", folder / "large.html")
    predict = ("predict", table, "--model", model, "-o", folder / "large-out.parquet")
    return [
        *tried(*train, expected={0}, processor_s=30),
        *tried(*predict, expected={0}, processor_s=30),
        *tried(*page, expected={2}, processor_s=30),
    ]


CLOSED = (">&-", "2>&-", "<&-", ">&- 2>&- <&-", ">/dev/full", "| head -1", "2>&1 | true")


def _streams(profile: Path, closed: str) -> Faults:
    """Leave the command without its streams."""
    faults = []
    for words in ("devices list", f"predict {profile}", "advise --help", "no-command"):
        shell = f"{sys.executable} -m mlscale {words} {closed}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        is_quiet = all(line.startswith("mlscale: ") for line in done.stderr.splitlines())
        if done.returncode not in (0, 2) or not is_quiet or ": None" in done.stderr:
            faults.append(f"{words} {closed}: {done.returncode} {done.stderr[-200:]!a}")
    return faults


def _endless_plan(_files: Files) -> Faults:
    words = ("collect", "--dry-run", "--repeat", 10**12)
    return tried(*words) + tried(*words[:-1], "9" * 400)


def _metadata_not_writable(files: Files) -> Faults:
    table = files.folder / "lonely.csv"
    table.with_suffix(".meta.json").mkdir()
    return tried("import", EXPORT, "-o", table, expected={2}, written=[table])


def _endless_input(files: Files) -> Faults:
    zero = Path("/dev/zero")
    return [
        fault
        for words in (
            ("predict", zero), ("import", zero), ("train", zero, "--base", "mid"),
            ("predict", files.profile, "--model", zero), ("report", zero),
            ("predict", files.profile, "--model", files.model, "--also", zero),
            ("advise", files.profile, "--model", files.model, "--weights", zero),
            ("import", EXPORT, "--device", zero), (*STUDY, zero),
        )
        for fault in tried(*words, "-o", files.folder / "of-zeros.csv", expected={2})
    ]  # fmt: skip


def _ascii_alone(files: Files) -> Faults:
    """A name beyond ASCII on a stream that has no more."""
    profile = files.folder / "greek.csv"
    profile.write_text(files.profile.read_text().replace("k1", "κ1\U0001f680"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    return [
        fault
        for words in (("predict", profile), ("predict", profile, "--format", "json"),
                      ("advise", profile), ("predict", files.folder / "κ.csv"))
        for fault in tried(*words, "--model", files.model, environment=environment)
    ]  # fmt: skip


def _name_of_other_bytes(files: Files) -> Faults:
    table = os.fsencode(files.folder) + b"/t\xff.csv"
    Path(os.fsdecode(table)).write_bytes(files.table.read_bytes())
    out = ("-o", files.folder / "of-bytes")
    return tried(*STUDY, table, *out, expected={2}) + tried("predict", table, *out)


AROUND = (
    _endless_plan, _metadata_not_writable, _endless_input, _ascii_alone,
    _name_of_other_bytes,
)  # fmt: skip
