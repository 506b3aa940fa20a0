"""The predictor wang-chu, the rule max+X behind it, and the command on a made table."""

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from synthetic.warps import KERNEL, derive, profiles_of

from mlscale.cli import literature_wang_chu as command
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning, InputError
from mlscale.papers.wang_chu import predict_time_factor, predict_time_ms
from mlscale.papers.wang_chu_gpus import load_gpu
from mlscale.papers.wang_chu_inputs import derive_inputs
from mlscale.predictors.wang_chu import WangChu

GTX_980 = load_gpu("gtx980")
GRID = ConfigGrid((16,), (400.0, 700.0, 1000.0), (400.0, 700.0, 1000.0))
BASE = HardwareConfig(16, 700.0, 700.0)

# By hand, with KERNEL of test_wang_chu_inputs and 100 000 warps, at 700 / 700 MHz: compute
# 0.25 x 42 + 10 = 20.5 cycles a warp; memory 16 x (0.5 + 0.5 x 9.326243) = 82.609943; 32 warps
# a round; 100 000 / (32 x 16) rounds of 700 000 cycles per ms.
Q_CYCLES = 32 * 82.609943
ROUNDS = 100_000 / (32 * 16)
Q_MS = Q_CYCLES * ROUNDS / 700_000
MEMORY_BOUND = {**KERNEL, **{n: 1000 * KERNEL[n] for n in KERNEL if n.endswith("_transactions")}}
MEMORY_BOUND["warps"] = 100_000.0
COMPUTE_BOUND = {**MEMORY_BOUND, "inst_per_warp": 2000.0}


def made() -> Measurements:
    """Two kernels whose times are exactly the model's absolute ones."""
    profiles = profiles_of(MEMORY_BOUND, COMPUTE_BOUND)
    mesh = np.meshgrid(GRID.cu_count, GRID.engine_mhz, GRID.memory_mhz, indexing="ij")
    time = predict_time_ms(derive_inputs(profiles, GTX_980), GTX_980, *mesh[1:])
    counters = np.broadcast_to(
        profiles.counters[:, None, None, None, :], (*time.shape, len(KERNEL))
    )
    return Measurements(
        device="gtx980",
        grid=GRID,
        kernels=("memory", "compute"),
        applications=("memory", "compute"),
        time_samples=time[None],
        power_samples=np.ones_like(time)[None],
        counter_names=profiles.counter_names,
        counter_samples=counters[None].copy(),
    )


class TestRule:
    def test_exposed_time_stays_in_engine_cycles(self) -> None:
        """By hand: base time Q + X with X = 300 cycles; at 1000 / 400 MHz memory takes longer."""
        time = (Q_CYCLES + 300) * ROUNDS / 700_000
        found = predict_time_factor(derive(MEMORY_BOUND), GTX_980, (700, 700), [time], 1000, 400)
        # (805.03 / 400 + 8.1762) x 2.5 = 25.4719375.
        q = 32 * 16 * (0.5 + 0.5 * 25.4719375)
        assert found == pytest.approx((q + 300) / 1000 / ((Q_CYCLES + 300) / 700), rel=1e-6)

    def test_a_base_faster_than_the_model_scales_it(self) -> None:
        """By hand: half the modelled time; the ratio of the models remains."""
        found = predict_time_factor(
            derive(MEMORY_BOUND), GTX_980, (700, 700), [Q_MS / 2], 1000, 400
        )
        q = 32 * 16 * (0.5 + 0.5 * 25.4719375)
        assert found == pytest.approx(q / 1000 / (Q_CYCLES / 700), rel=1e-6)

    def test_a_bottleneck_can_change(self) -> None:
        """By hand: all hits; 0.25 x 392 + 10 = 108 compute cycles against memory's 16."""
        hits = {**MEMORY_BOUND, "dram_read_transactions": 0.0, "dram_write_transactions": 0.0}
        inputs = derive({**hits, "inst_per_warp": 400.0})
        q_ms = 32 * 108 * ROUNDS / 700_000
        found = predict_time_factor(inputs, GTX_980, (700, 700), [q_ms], [350, 700, 1400], 700)
        np.testing.assert_allclose(found, [[2, 1, 0.5]], rtol=1e-12)

    @given(
        time=st.floats(1e-3, 1e3),
        engine=st.floats(100, 3000),
        memory=st.floats(100, 6000),
        faster=st.floats(1, 3),
    )
    @settings(max_examples=50, deadline=None)
    def test_bounds(self, time: float, engine: float, memory: float, faster: float) -> None:
        """The base is met exactly; a faster clock never slows, nor gains more than its own factor.

        But for a DRAM delay that falls with the memory clock: 805.03 / f + 8.1762 gains up to
        that term besides.
        """
        inputs = derive(MEMORY_BOUND)

        def factor(engine_mhz: float, memory_mhz: float) -> float:
            clocks = (engine, memory)
            found = predict_time_factor(inputs, GTX_980, clocks, [time], engine_mhz, memory_mhz)
            return float(found[0])

        assert factor(engine, memory) == pytest.approx(1, rel=1e-12)
        assert 1 / faster - 1e-12 <= factor(engine * faster, memory) <= 1 + 1e-12
        extra = (805.03 / memory + 8.1762) / (805.03 / memory / faster + 8.1762)
        assert 1 / faster / extra - 1e-12 <= factor(engine, memory * faster) <= 1 + 1e-12


class TestPredictor:
    def test_it_needs_no_training(self) -> None:
        found = WangChu().fit([], []).predict(profiles_of(MEMORY_BOUND, COMPUTE_BOUND), GRID)
        assert found.values.shape == (2, 1, 3, 3)
        assert found.base == BASE
        np.testing.assert_allclose(found.at(BASE)[0], 1, rtol=1e-12)
        # The compute-bound kernel has an exposed time besides, in engine cycles too.
        np.testing.assert_allclose(
            found.values[1, 0] * np.array(GRID.engine_mhz)[:, None], 700, rtol=1e-12
        )

    def test_a_grid_it_was_not_trained_on(self) -> None:
        elsewhere = ConfigGrid((16,), (1500.0,), (3500.0,))
        predictor = WangChu().fit(made(), BASE)
        profiles = made().profiles(BASE)
        assert predictor.predict(profiles).grid == GRID
        assert predictor.predict(profiles, elsewhere).values.shape == (2, 1, 1, 1)

    def test_without_training_it_needs_a_grid(self) -> None:
        with pytest.raises(InputError, match="'wang-chu' learnt no grid"):
            WangChu().fit([], []).predict(profiles_of(KERNEL))

    @pytest.mark.parametrize("cu_counts", [(8,), (8, 16)])
    def test_other_cu_counts_are_refused(self, cu_counts: tuple[int, ...]) -> None:
        grid = ConfigGrid(cu_counts, (700.0,), (700.0,))
        with pytest.raises(InputError, match="'gtx980' holds for its 16 CUs, not for 8"):
            WangChu().fit([], []).predict(profiles_of(KERNEL), grid)
        slice_of_gpu = profiles_of(KERNEL, base=HardwareConfig(8, 700.0, 700.0))
        with pytest.raises(InputError, match="not for 8"):
            WangChu().fit([], []).predict(slice_of_gpu, GRID)

    def test_power_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"^'wang-chu' predicts time, not 'power'$"):
            WangChu(quantity="power").fit(made(), BASE)
        assert WangChu.quantities == ("time",)

    def test_what_cannot_be_predicted_is_refused_at_fit(self) -> None:
        with pytest.raises(InputError, match="there is no device 'made-gpu'"):
            WangChu().fit(replace(made(), device="made-gpu"), BASE)
        names = tuple(name.replace("warps", "waves") for name in KERNEL)
        with pytest.raises(InputError, match="no column 'warps'"):
            WangChu().fit(replace(made(), counter_names=names), BASE)
        fewer = replace(made(), grid=ConfigGrid((8,), GRID.engine_mhz, GRID.memory_mhz))
        with pytest.raises(InputError, match="for its 16 CUs, not for 8"):
            WangChu().fit(fewer, (0, 1, 1))

    def test_a_device_without_micro_benchmarks(self) -> None:
        grid = ConfigGrid((72,), (1000.0, 1500.0), (6500.0,))
        profiles = profiles_of(
            MEMORY_BOUND, device="rtx8000", base=HardwareConfig(72, 1500.0, 6500.0)
        )
        found = WangChu().fit([], []).predict(profiles, grid).values[0, 0, :, 0]
        assert found[1] == pytest.approx(1)
        assert 1 <= found[0] <= 1.5

    def test_flags_say_what_lies_outside_the_scope(self) -> None:
        profiles = profiles_of({**KERNEL, "inst_fp_64": 6400.0}, KERNEL)
        flags = WangChu().fit([], []).predict(profiles, GRID).flags
        assert "FP64" in flags[0][0]
        assert flags[1] == ()

    @pytest.mark.parametrize("training", [True, False])
    def test_state_through_json_gives_the_same(self, training: bool) -> None:
        profiles = made().profiles(BASE)
        fitted = WangChu().fit(*((made(), BASE) if training else ([], [])))
        restored = WangChu().restore(json.loads(json.dumps(fitted.state())))
        grid = None if training else GRID
        np.testing.assert_array_equal(
            restored.predict(profiles, grid).values, fitted.predict(profiles, grid).values
        )

    def test_clone(self) -> None:
        assert clone(WangChu()).get_params() == {"quantity": "time"}

    def test_it_imports_numpy_alone(self) -> None:
        code = (
            "import sys, mlscale.predictors.wang_chu\n"
            "heavy = {'pandas', 'sklearn', 'torch', 'matplotlib', 'scipy'} & sys.modules.keys()\n"
            "sys.exit(', '.join(heavy) or 0)"
        )
        ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
        assert ran.returncode == 0, ran.stderr


class TestCommand:
    def run(self, table: Path, *options: str) -> None:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        command.run(parser.parse_args([str(table), *options]))

    def table(self, folder: Path, data: Measurements | None = None) -> Path:
        path = folder / "made.csv"
        (data or made()).write(path)
        return path

    def test_absolute_on_its_own_predictions(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.run(self.table(tmp_path), "--device", "gtx980", "--absolute")
        printed = capsys.readouterr().out
        assert "made: 2 kernels on gtx980, base cu=16,engine=700,memory=700" in printed
        assert "(11) memory-bound" in printed
        assert "(9) compute-bound" in printed
        assert "MAPE 0.00 %" in printed
        assert "over 9 configurations" in printed

    def test_relative_writes_tables_and_figures(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table, out = self.table(tmp_path), tmp_path / "out"
        self.run(table, "-o", str(out))
        assert "over 8 configurations" in capsys.readouterr().out
        stems = ("fig2-speedup", "fig13-signed-error", "fig14-kernel-error")
        figures = {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
        assert {file.name for file in out.iterdir()} == figures | {"predictions.csv", "kernels.csv"}
        predictions = (out / "predictions.csv").read_text(encoding="utf-8").splitlines()
        assert len(predictions) == 1 + 2 * 9
        at_base = next(line for line in predictions if ",memory,16,700,700," in line)
        measured, predicted, error, case = at_base.split(",")[-4:]
        assert float(measured) == pytest.approx(float(predicted), rel=1e-12)
        assert abs(float(error)) < 1e-9
        assert case == "11"
        assert b"<dc:date>" not in (out / "fig2-speedup.svg").read_bytes()

    def test_one_memory_clock(self, tmp_path: Path) -> None:
        """As the public P100 data: panels along the engine clock alone."""
        data = made()
        one = replace(
            data,
            grid=ConfigGrid((16,), GRID.engine_mhz, (700.0,)),
            time_samples=data.time_samples[..., 1:2],
            power_samples=None,
            counter_samples=data.counter_samples[..., 1:2, :],
        )
        self.run(self.table(tmp_path, one), "-o", str(tmp_path / "out"))
        drawn = (tmp_path / "out" / "fig2-speedup.svg").stat().st_size
        self.run(self.table(tmp_path), "-o", str(tmp_path / "both"))
        assert 0 < drawn < (tmp_path / "both" / "fig2-speedup.svg").stat().st_size

    def test_one_configuration(self, tmp_path: Path) -> None:
        data = made()
        one = replace(
            data,
            grid=ConfigGrid((16,), (700.0,), (700.0,)),
            time_samples=data.time_samples[..., 1:2, 1:2],
            power_samples=None,
            counter_samples=data.counter_samples[..., 1:2, 1:2, :],
        )
        table = self.table(tmp_path, one)
        with pytest.raises(InputError, match="only: nothing to predict from it"):
            self.run(table)
        self.run(table, "--absolute", "-o", str(tmp_path / "out"))
        names = {file.name for file in (tmp_path / "out").iterdir()}
        assert "fig14-kernel-error.png" in names
        assert "fig2-speedup.png" not in names

    def test_warnings_and_errors(self, tmp_path: Path) -> None:
        data = made()
        table = self.table(tmp_path, data)
        with pytest.raises(InputError, match="is of device 'gtx980', not of 'p100'"):
            self.run(table, "--device", "p100")
        with pytest.raises(InputError, match="memory_mhz 650 is not on the grid"):
            self.run(table, "--base", "engine=700,memory=650")
        with pytest.raises(InputError, match=r"there is no device 'fury'.* to add one"):
            self.run(self.table(tmp_path, replace(data, device="fury")))
        named = self.table(tmp_path, replace(data, device="my card"))
        self.run(named, "--device", "gtx980")
        samples = data.counter_samples.copy()
        samples[..., data.counter_names.index("inst_fp_64")] = 1e8
        with pytest.warns(DataWarning, match=r"FP64, outside .* \(2 of 2 kernels\)"):
            self.run(self.table(tmp_path, replace(data, counter_samples=samples)))
