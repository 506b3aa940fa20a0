"""The registry: public files by checksum, shipped ones by name; and what is shipped is true.

Expected: the READMEs of the public data and of the simulated set.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from synthetic.tidy import refused

from mlscale import HardwareConfig, Measurements, load, read, read_profiles
from mlscale.data.datasets import Dataset, all_datasets, dataset, identify, path, public_datasets
from mlscale.data.devices import load_device
from mlscale.data.nv_dvfs import read_nv_dvfs
from mlscale.data.table_files import read_table

SHIPPED = (
    "simulated-gcn3.parquet",
    "simulated-gcn3-profile.csv",
    "simulated-gcn3.mlscale",
    "training-step-trace.json.gz",
)
# From the README of the public data: checksum -> GPU of the file.
CHECKSUMS = {
    "aa22f23b716f43004843f6a3d2f0533248663c1bf12e3ecdfda3c9b002b941c6": "gtx980",
    "3c381b354411386b051096cd028f61e3c863a817895bf9cdd14ce65220483a58": "gtx980",
    "c81f66765692ff57f5a1c78b89efbc58dd13cf0ac295a3b7f7b39f773fc1c2f5": "gtx980",
    "e5d3a6804ba09704dac0cf8687255c9ad18302ba066ff4102d85401dd61fe468": "gtx1080ti",
    "17ac8f1c630bfab507920c5c2396776ef6634a7442d055fbe85ef3391b232654": "p100",
    "02e9bda8fadf6899133b3d4e0f99ca8da494df3fa0fbd42b24913281a2021a83": "titanx",
    "941d71e9d7d0ff3a1e197089da1d89aa10c16d3e788c4ff5d5c6640893fbe0be": "v100",
    "15c28c21eba9892d4a1fe8ba5fbea2c5ce2173e281067b6a35d06636cae94c30": "rtx2070s",
}
# Where the files of the data at hand lie; all others in dvfs/ by their own names.
AT_HAND = {
    "wang-chu-gtx980": "wang-chu-gtx980/gtx980-DVFS-Performance.csv",
    "rtx8000-sampled": "sampled/rtx8000-microbenchmark-dcgm.csv",
    "v100-sampled": "sampled/v100-microbenchmark-dcgm.csv",
    "a100-sampled": "sampled/a100-spec-accel-dcgm.csv",
}


def assert_holds(entry: Dataset, data: Measurements) -> None:
    assert entry.axes is not None
    assert {name: tuple(values) for name, values in entry.axes.items()} == {
        "cu_count": data.grid.cu_count,
        "engine_mhz": data.grid.engine_mhz,
        "memory_mhz": data.grid.memory_mhz,
    }
    assert entry.kernels == len(data.kernels)
    assert entry.counters == len(data.counter_names)
    assert entry.power == (data.power_w is not None)
    assert entry.device == data.device
    assert set(entry.faults) <= set(data.kernels)


class TestPublicFiles:
    def test_are_known_with_their_gpu_and_source(self) -> None:
        known = {entry.sha256: entry.device for entry in public_datasets().values()}
        assert known.items() >= CHECKSUMS.items()
        for name, entry in public_datasets().items():
            assert entry.name == name
            assert (entry.url or entry.url_of_parts).startswith("https://")
            assert not entry.url or entry.url.endswith(f"/{entry.file}")
            assert load_device(entry.device).key == entry.device

    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    def test_hold_what_is_said_of_them(self, data_folder: Path) -> None:
        found = 0
        for name, entry in public_datasets().items():
            file = data_folder / AT_HAND.get(name, f"dvfs/{entry.file}")
            if file.is_file():  # others are known, but not among the data at hand
                assert identify(file) == entry
                assert entry.size_bytes == file.stat().st_size
                assert_holds(entry, read_nv_dvfs(file, None))
                found += 1
        assert found == 8

    def test_of_other_content_are_not_known(self, data_folder: Path, tmp_path: Path) -> None:
        content = (data_folder / AT_HAND["wang-chu-gtx980"]).read_bytes()
        (tmp_path / "longer.csv").write_bytes(content + b"\n")
        assert identify(tmp_path / "longer.csv") is None


class TestOwnSets:
    @pytest.mark.parametrize("name", ["simulated-gcn3", "h100-suite", "h200-suite"])
    def test_whole_grids(self, name: str) -> None:
        entry = all_datasets()[name]
        assert_holds(entry, read(path(entry.file)))

    @pytest.mark.parametrize("name", [n for n, entry in all_datasets().items() if entry.parts])
    def test_made_of_public_files(self, name: str) -> None:
        """Every clock that is said to be there is; each was kept to 1.5 % and is of full speed."""
        entry = all_datasets()[name]
        table = read_table(path(entry.file))
        assert entry.axes is not None
        assert entry.kernels == len(set(table.text["kernel"]))
        for axis, steps in entry.axes.items():
            assert sorted(set(table.numbers[axis].tolist())) == steps
        kept = table.numbers["engine_mhz_observed"] / table.numbers["engine_mhz"]
        assert np.abs(kept - 1).max() < 0.015
        assert table.metadata["source"] == entry.url_of_parts
        assert table.metadata["licence"] == entry.licence == "CC BY 4.0"
        assert table.metadata["profile_kind"] == "sampled"

    def test_of_another_name_are_refused_with_a_guess(self) -> None:
        with refused("there is no data set 'gtx980-lwo'; available: .*; is 'gtx980-low' meant?"):
            dataset("gtx980-lwo")


def test_a_name_that_is_not_shipped_is_refused_with_those_that_are() -> None:
    for name in SHIPPED:
        assert path(name).name == name
        with refused(f"no file 'gcn3.parquet' is shipped; available: .*{name}"):
            path("gcn3.parquet")


class TestSimulatedSet:
    """The numbers are those of the simulated set's own README."""

    def test_holds_what_its_card_says(self) -> None:
        data = read(path("simulated-gcn3.parquet"))
        assert len(data.kernels) == 48
        assert len(set(data.applications)) == 28
        assert data.metadata["origin"] == "simulated"
        status = data.metadata["feature_status"]
        assert len(status) == 22
        not_exact = {name: how for name, how in status.items() if how != "exact"}
        assert not_exact == dict.fromkeys(("MemUnitBusy", "MemTime"), "nearest") | dict.fromkeys(
            ("MemUnitStalled", "WriteUnitStalled", "LDSBankConflict"), "missing"
        )

    def test_equals_what_the_simulator_gave_number_for_number(self, data_folder: Path) -> None:
        data = read(path("simulated-gcn3.parquet"))
        with (data_folder / "mgpusim" / "gcn3-scaling.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        identity = ("device", "application", "kernel", "cu_count", "engine_mhz", "memory_mhz")
        assert set(data.counter_names) == set(rows[0]) - {*identity, "time_ms"}
        assert len(rows) == data.time_samples.size == 48 * 48
        for row in rows:
            config = HardwareConfig(*(float(row[name]) for name in identity[3:]))  # type: ignore[arg-type]
            at = (data.kernels.index(row["kernel"]), *data.grid.index(config))
            assert data.applications[at[0]] == row["application"]
            assert data.time_ms[at] == float(row["time_ms"])
            given = np.array([float(row[name] or "nan") for name in data.counter_names])
            np.testing.assert_array_equal(data.counters[at], given)

    def test_profile_is_its_row_at_the_models_base_which_the_model_has_not_seen(self) -> None:
        model = load(path("simulated-gcn3.mlscale"))
        profiles = read_profiles(path("simulated-gcn3-profile.csv"), model.base, model.device)
        at_base = read(path("simulated-gcn3.parquet")).profiles(model.base)
        assert len(profiles.kernels) == 1
        k = at_base.kernels.index(profiles.kernels[0])
        assert profiles.time_ms[0] == at_base.time_ms[k]
        for name in at_base.counter_names:
            np.testing.assert_array_equal(profiles.counter(name)[0], at_base.counter(name)[k])
        assert not set(profiles.kernels) & set(model.card["kernels"])
        assert not set(profiles.applications) & set(model.card["applications"])
        assert len(model.card["applications"]) == 28 - 1
