"""The model file: the same numbers back, and one clear line for whatever is not a whole one."""

import io
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import (
    DELETED,
    GRID,
    Answer,
    answer,
    content_of,
    members_of,
    npy,
    outcome,
    paths_of,
    small,
    trained,
    with_document,
    with_value,
    zipped,
)
from parameters import own
from synthetic import kernels as made
from synthetic.tidy import refused, same_bits

from mlscale import PREDICTORS, Measurements, Model, Profiles, load, save, train
from mlscale.model.predictions import COVERAGE
from mlscale.predictors.base import Savable

MID = made.GRID.mid
# The others need a GPU that is known, or samples.
NEED_MORE = ("wang-chu", "max-overlap", "bottleneck", "board-power", "board-time")
WITH_ANY_TABLE = [n for n, k in PREDICTORS.items() if issubclass(k, Savable) and n not in NEED_MORE]


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
            assert surfaces.flags == after[quantity].flags
            params = [one.predictors[quantity].get_params() for one in (model, loaded)]
            assert params[0] == params[1]
        assert answer(loaded, profiles) == answer(model, profiles)
        for field in ("device", "grid", "base", "card"):
            assert getattr(loaded, field) == getattr(model, field)

    @pytest.mark.parametrize("name", ["wu", "nearest", "mean-surface"])
    def test_the_same_model_gives_the_same_bytes(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(2):
            model = train(measurements(True), MID, name, **own(name, clusters=3))
            save(model, tmp_path / f"{number}.mlscale")
            monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(1e9))  # another day
        save(load(tmp_path / "0.mlscale"), tmp_path / "2.mlscale")
        files = [(tmp_path / f"{number}.mlscale").read_bytes() for number in range(3)]
        assert files[0] == files[1] == files[2]

    def test_no_temporary_file_stays(self, tmp_path: Path) -> None:
        save(small("mean-surface")[0], tmp_path / "a.mlscale")
        assert [path.name for path in tmp_path.iterdir()] == ["a.mlscale"]


class TestSavingIsRefused:
    def test_of_what_exists_for_studies_and_the_old_file_stays(self, tmp_path: Path) -> None:
        path = tmp_path / "a.mlscale"
        path.write_text("old")
        model, _ = small("mean-surface")
        trees = PREDICTORS["extra-trees"]().set_params(trees=2)
        trees.fit(made.measurements(per_group=1, grid=GRID), GRID.mid)
        with refused("'extra-trees' cannot be saved: it lacks state and restore"):
            save(replace(model, predictors={"time": trees}), path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestDamage:
    """A damaged file either still gives the very same answer, or is refused in one line."""

    def check(self, content: bytes, path: Path, profiles: Profiles, expected: Answer) -> None:
        path.write_bytes(content)
        found = outcome(path, profiles)
        if isinstance(found, str):
            assert found.startswith(f"{path}: ")
            assert len(found.splitlines()) == 1
        else:
            assert found == expected

    def test_every_flipped_bit_of_the_directory(self, tmp_path: Path) -> None:
        # The members are protected by checksums, the zip's directory is not.
        model, profiles = small("mean-surface")
        content = content_of(model, tmp_path)
        start = content.index(b"PK\x01\x02")
        assert 100 < len(content) - start < 200
        expected = answer(model, profiles)
        for offset in range(start, len(content)):
            for bit in range(8):
                damaged = bytearray(content)
                damaged[offset] ^= 1 << bit
                path = tmp_path / "damaged.mlscale"
                self.check(bytes(damaged), path, profiles, expected)

    def test_truncated_files(self, wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
        content, _ = wu
        path = tmp_path / "short.mlscale"
        for length in [*range(1, len(content) - 40, 31), *range(len(content) - 40, len(content))]:
            path.write_bytes(content[:length])
            with refused("short.mlscale: is not a whole mlscale model file"):
                load(path)


class TestWhatIsNoModelFile:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"kernel,time_ms\na,1\n", "is not a whole mlscale model file"),
            (bytes(range(256)) * 9, "is not a whole mlscale model file"),
            (zipped({}), "is not an mlscale model file"),
            (zipped({"xl/workbook.xml": b"<xml/>"}), "is not an mlscale model file"),
            (zipped({"model.json": b'{"format": "onnx"}'}), "is not an mlscale model file"),
            (zipped({"model.json": b"[1, 2]"}), "is a .*: model.json: must hold a JSON object"),
            (zipped({"model.json": b"{"}), "is a .*: model.json: is not valid JSON"),
            (zipped({"model.json": b"\xff\xfe{}"}), "is a .*: model.json: is not valid JSON"),
        ],
    )
    def test_is_refused(self, content: bytes, message: str, tmp_path: Path) -> None:
        path = tmp_path / "some.mlscale"
        path.write_bytes(content)
        with refused(f"^{path}: {message}"):
            load(path)

    @pytest.mark.parametrize("version", [1, 99, None, "2"])
    def test_of_another_version(
        self, version: object, wu: tuple[bytes, Profiles], tmp_path: Path
    ) -> None:
        path = tmp_path / "future.mlscale"
        path.write_bytes(with_document(wu[0], lambda d: d.update(format_version=version)))
        with refused(
            f"has model format {version}, this mlscale reads 2; "
            "train it anew: mlscale train TABLE -o MODEL"
        ):
            load(path)

    def test_what_lacks_is_named(self, wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
        path = tmp_path / "old.mlscale"
        path.write_bytes(with_document(wu[0], lambda document: document.pop("card")))
        with refused("is a damaged model file: it lacks 'card'"):
            load(path)


class RunsCode:
    """Unpickling it writes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


class TestArrays:
    def test_pickled_objects_are_refused_and_not_run(
        self, wu: tuple[bytes, Profiles], tmp_path: Path
    ) -> None:
        members = members_of(wu[0])
        trace, path = tmp_path / "code-was-run", tmp_path / "pickled.mlscale"
        pickled = npy(np.array([RunsCode(trace)], dtype=object))
        for name in members.keys() - {"model.json"}:
            path.write_bytes(zipped(members | {name: pickled}))
            with refused("is a damaged model file: an array of object"):
                load(path)
        assert not trace.exists()
        np.load(io.BytesIO(pickled), allow_pickle=True)
        assert trace.exists()  # that is what it would have done

    @pytest.mark.parametrize("predictor", ["wu", "nearest", "mean-surface"])
    def test_another_shape_is_refused(self, predictor: str, tmp_path: Path) -> None:
        model = train(measurements(), MID, predictor, **own(predictor, clusters=3))
        members = members_of(content_of(model, tmp_path))
        path = tmp_path / "shape.mlscale"
        for name in members.keys() - {"model.json"}:
            array = np.load(io.BytesIO(members[name]))
            turned = array.T.copy()
            shorter, longer = array[..., :-1], np.concatenate([array, array])
            wrong = [shorter, longer] + ([turned] if turned.shape != array.shape else [])
            for other in wrong:
                path.write_bytes(zipped(members | {name: npy(other)}))
                with refused("shape.mlscale: is a damaged model file: "):
                    load(path)

    @pytest.mark.parametrize("value", [math.nan, math.inf, 1j, "x", np.datetime64("2015-02-07")])
    def test_what_are_no_finite_numbers_is_refused(
        self, value: object, wu: tuple[bytes, Profiles], tmp_path: Path
    ) -> None:
        members = members_of(wu[0])
        path = tmp_path / "values.mlscale"
        for name in members.keys() - {"model.json"}:
            shape = np.load(io.BytesIO(members[name])).shape
            path.write_bytes(zipped(members | {name: npy(np.full(shape, value))}))
            with refused("is a damaged model file: an array (of|holds)"):
                load(path)


class TestTheDocument:
    @pytest.mark.parametrize(
        "value",
        [DELETED, None, -1, 99, math.inf, 10**400, "x", [], {}, ["a"], {"array": "arrays/0.npy"}],
        ids=lambda value: "deleted" if value is DELETED else str(value)[:30],
    )
    def test_anything_in_it_may_be_wrong(
        self, value: object, wu: tuple[bytes, Profiles], tmp_path: Path
    ) -> None:
        # Every part of model.json is deleted or replaced in turn: the file is refused in one
        # line, when it is loaded or asked, or it does not matter; nothing else is raised.
        content, profiles = wu
        members = members_of(content)
        document = json.loads(members["model.json"])
        path, raised = tmp_path / "wrong.mlscale", {}
        for where in paths_of(document):
            wrong = with_value(document, where, value)
            path.write_bytes(zipped(members | {"model.json": json.dumps(wrong).encode()}))
            try:
                found = outcome(path, profiles)
            except Exception as error:
                raised[where] = repr(error)
                continue
            if isinstance(found, str):
                assert len(found.splitlines()) == 1
            else:
                assert all(math.isfinite(row["time_ms"]) for row in found[0])
        assert raised == {}

    def test_a_model_without_time_is_refused(
        self, wu: tuple[bytes, Profiles], tmp_path: Path
    ) -> None:
        path = tmp_path / "none.mlscale"
        path.write_bytes(with_document(wu[0], lambda document: document.update(predictors={})))
        with refused("none.mlscale: is a damaged model file: "):
            load(path)

    def test_a_predictor_of_another_quantity_is_refused(self, tmp_path: Path) -> None:
        def swap(document: dict[str, Any]) -> None:
            kinds = document["predictors"]
            kinds["time"], kinds["power"] = kinds["power"], kinds["time"]

        content = content_of(small("mean-surface", power=True)[0], tmp_path)
        path = tmp_path / "swapped.mlscale"
        path.write_bytes(with_document(content, swap))
        with refused("swapped.mlscale: is a damaged model file: a predictor of 'power'"):
            load(path)

    def test_deep_nesting_is_no_crash(self, wu: tuple[bytes, Profiles], tmp_path: Path) -> None:
        content, profiles = wu
        members = members_of(content)
        document = members["model.json"].decode()
        path = tmp_path / "deep.mlscale"
        for depth in (300, 480, 900, 100_000):
            deep = document.replace('"state": {', f'"state": {{"x": {"[" * depth + "]" * depth},')
            path.write_bytes(zipped(members | {"model.json": deep.encode()}))
            found = outcome(path, profiles)
            assert not isinstance(found, str) or len(found.splitlines()) == 1
