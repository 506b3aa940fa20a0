"""The model file: the same numbers back, and one clear line for whatever is not a whole one.

Expected: the saved model's own numbers; what is damaged is made by hand, one case of each kind.
"""

import io
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import (
    GRID,
    answer,
    content_of,
    members_of,
    npy,
    small,
    trained,
    with_document,
    zipped,
)
from parameters import own
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

from mlscale import PREDICTORS, InputError, Measurements, Model, Profiles, load, save, train
from mlscale.model.predictions import COVERAGE
from mlscale.predictors.base import Savable

MID = made.GRID.mid
# The others need a GPU that is known, or readings of a monitor.
NEED_MORE = ("wang-chu", "max-overlap", "bottleneck", "runs")
WITH_ANY_TABLE = [n for n, k in PREDICTORS.items() if issubclass(k, Savable) and n not in NEED_MORE]

Members = dict[str, bytes]


def measurements(utilisation: bool = False, seed: int = 0) -> Measurements:
    """Twelve kernels; with nvprof counters of a GTX 980, one of them missing once, or without."""
    plain = made.measurements(seed=seed)
    if not utilisation:
        return plain
    names = ("dram_read_transactions", "dram_write_transactions", "achieved_occupancy", "ipc")
    counters = np.abs(plain.counter_samples) * [1e6, 1e6, 1.0, 2.0]
    counters[:, 2, ..., 3] = np.nan
    return replace(plain, device="gtx980", counter_names=names, counter_samples=counters)


@pytest.fixture(scope="module")
def wu(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Profiles]:
    """The file of a small model of `wu`, and profiles to ask it."""
    model, profiles = small("wu")
    return content_of(model, tmp_path_factory.mktemp("wu")), profiles


class TestRoundTrip:
    @pytest.mark.parametrize("utilisation", [False, True])
    @pytest.mark.parametrize("name", WITH_ANY_TABLE)
    def test_of_tables_of_any_gpu(self, name: str, utilisation: bool, tmp_path: Path) -> None:
        model = train(measurements(utilisation), MID, name, **own(name, clusters=3, neighbours=2))
        assert model.predictors.keys() == {"time", "power"}
        self.check(model, measurements(utilisation, seed=1).profiles(MID), tmp_path)

    @pytest.mark.parametrize("name", NEED_MORE)
    def test_of_tables_of_their_own(self, name: str, tmp_path: Path) -> None:
        self.check(*trained(name), tmp_path)

    @staticmethod
    def check(model: Model, profiles: Profiles, folder: Path) -> None:
        """The loaded model is the saved one, and predicts the same to the last bit."""
        save(model, folder / "a.mlscale")
        loaded = load(folder / "a.mlscale")
        before, after = model.predict(profiles, COVERAGE), loaded.predict(profiles, COVERAGE)
        assert before.keys() == after.keys() == model.predictors.keys()
        for quantity, surfaces in before.items():
            for side in ("values", "low", "high"):
                one, other = getattr(surfaces, side), getattr(after[quantity], side)
                assert (one is None and other is None) or same_bits(one, other)
            params = [one.predictors[quantity].get_params() for one in (model, loaded)]
            assert params[0] == params[1]
        assert answer(loaded, profiles) == answer(model, profiles)
        for field in ("device", "grid", "base", "card"):
            assert getattr(loaded, field) == getattr(model, field)

    def test_the_same_model_gives_the_same_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(2):
            model = train(measurements(True), MID, "wu", clusters=3)
            save(model, tmp_path / f"{number}.mlscale")
            monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(1e9))  # another day
        save(load(tmp_path / "0.mlscale"), tmp_path / "2.mlscale")
        files = [(tmp_path / f"{number}.mlscale").read_bytes() for number in range(3)]
        assert files[0] == files[1] == files[2]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mlscale"
    path.write_text("old")
    model, _ = small("mean-surface")
    trees = PREDICTORS["extra-trees"]().set_params(trees=2)
    trees.fit(made.measurements(per_group=1, grid=GRID), GRID.mid)
    with refused("'extra-trees' cannot be saved: it lacks state and restore"):
        save(replace(model, predictors={"time": trees}), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content",
    [
        b"kernel,time_ms\na,1\n",
        zipped({"xl/workbook.xml": b"<xml/>"}),
        zipped({"model.json": b'{"format": "onnx"}'}),
    ],
)
def test_what_is_no_model_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.mlscale"
    path.write_bytes(content)
    with refused(f"^{path}: (is not an mlscale model |is a table or log, not an mlscale model)"):
        load(path)


@pytest.mark.parametrize("version", [1, 99])
def test_of_another_version(version: int, wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
    """mlscale 0.2.0 wrote format 1."""
    path = tmp_path / "other.mlscale"
    path.write_bytes(with_document(wu[0], lambda document: document.update(format_version=version)))
    with refused(
        f"has model format {version}, this mlscale reads 2; "
        "train it again: mlscale train TABLE --output MODEL"
    ):
        load(path)


def without_an_array(members: Members) -> bytes:
    return zipped({name: member for name, member in members.items() if name != "arrays/0.npy"})


def with_a_flipped_bit(members: Members) -> bytes:
    content = bytearray(zipped(members))
    content[content.index(members["arrays/0.npy"]) + 100] ^= 1
    return bytes(content)


DAMAGE: dict[str, tuple[Callable[[Members], bytes], str]] = {
    "no JSON": (lambda m: zipped(m | {"model.json": b"{"}), "model.json: is not valid JSON"),
    "an array that lacks": (without_an_array, "arrays/0.npy"),
    "a flipped bit": (with_a_flipped_bit, "Bad CRC-32 for file 'arrays/0.npy'"),
}


def refusal(folder: Path, content: bytes) -> str:
    """The message on a damaged model file of that content."""
    path = folder / "crafted.mlscale"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        load(path)
    [message] = str(error.value).splitlines()
    assert message.startswith(f"{path}: is a damaged model file: ")
    assert message.endswith(
        "; copy it again, or train it again: mlscale train TABLE --output MODEL"
    )
    return message


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_line(kind: str, tmp_path: Path) -> None:
    damaged, words = DAMAGE[kind]
    members = members_of(content_of(trained("nearest")[0], tmp_path))
    assert words in refusal(tmp_path, damaged(members))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = members_of(content_of(trained("nearest")[0], tmp_path))
    monkeypatch.setattr("mlscale.model.model_file._LARGEST_BYTES", 1 << 20)
    bomb = zipped(members | {"more.npy": npy(np.zeros(1 << 17))})
    assert "unpacks to more than 1 MiB" in refusal(tmp_path, bomb)


class RunsCode:
    """Unpickling it writes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def test_pickled_objects_are_not_run(wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
    trace = tmp_path / "code-was-run"
    pickled = npy(np.array([RunsCode(trace)], dtype=object))
    refusal(tmp_path, zipped(members_of(wu[0]) | {"arrays/0.npy": pickled}))
    assert not trace.exists()
    np.load(io.BytesIO(pickled), allow_pickle=True)
    assert trace.exists()  # that is what it would have done


def test_a_file_that_was_cut_off(wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
    path = tmp_path / "short.mlscale"
    for length in range(1, len(wu[0]), 97):
        path.write_bytes(wu[0][:length])
        with refused("short.mlscale: is not an mlscale model"):
            load(path)
