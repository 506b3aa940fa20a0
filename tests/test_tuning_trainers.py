"""`mlscale.tune` under torch.distributed, and in the trainers of Hugging Face and Lightning.

Regression only, but for the clock of the slowest rank, which is made.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from synthetic.tuned_job import MadeBoard, MadeJob, made_curve

from mlscale import InputError
from mlscale.tuning import Ranks, Tuner, TuningGoal

RANKS, SLOWEST = 4, 2
RANK = """
import json, os, sys
from dataclasses import replace
import torch.distributed as dist
from synthetic.tuned_job import Curve, MadeBoard, MadeJob, made_curve
from mlscale.tuning import TuningGoal, Tuner
rank, folder, ranks, what = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
os.environ["XDG_STATE_HOME"] = f"{folder}/state-{rank}"
dist.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=ranks)
curve = made_curve()
if rank == 2:
    curve = Curve(curve.mhz[:-6], curve.times[:-6] / curve.times[-7], curve.watts[:-6])
made = MadeJob(MadeBoard(curve), 0.3, seed=rank)
made.board.may_set = not (what == "forbidden" and rank == 1)
made.board.breaks_after = 2 if what == "breaks" and rank == 3 else 1 << 60
held = []
tuner = Tuner(range(200 if what == "ends" and rank == 3 else 1000), TuningGoal(recheck_s=150), made)
for _ in tuner:
    made.run_step()
    held.append(made.board.locked_mhz)
found = [one.engine_mhz for one in tuner.readings]
print(json.dumps([held, tuner.state, found, made.board.locked_mhz]), flush=True)
os._exit(0)
"""


def ranks(folder: Path, what: str) -> Sequence[tuple[list[int], str, list[float], int]]:
    """Of each rank the clocks that it held, how it ended, clocks measured, the clock at the end."""
    words = [sys.executable, "-c", RANK]
    children = [
        subprocess.Popen(
            [*words, str(rank), str(folder), str(RANKS), what],
            stdout=subprocess.PIPE, cwd=Path(__file__).parent, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    told = [child.communicate(timeout=600)[0] for child in children]
    return [tuple(json.loads(one.splitlines()[-1])) for one in told]


@pytest.mark.slow
class TestRanks:
    def test_all_set_the_same_clock_at_the_same_step(self, tmp_path: Path) -> None:
        every = ranks(tmp_path, "")
        held, state, found, _ = every[0]
        assert state == "set"
        assert len(set(held)) > 3
        assert all(one[0] == held for one in every)
        assert {one[1] for one in every} == {"set"}
        assert {one[3] for one in every} == {0}
        assert found[0] == made_curve().mhz[-7], "the slowest's"

    @pytest.mark.parametrize("what", ["forbidden", "breaks"])
    def test_one_that_may_not_or_fails_makes_all_stay(self, tmp_path: Path, what: str) -> None:
        every = ranks(tmp_path, what)
        assert {one[1] for one in every} == {"off"}
        assert {len(one[0]) for one in every} == {1000}
        assert {one[0][-1] for one in every} == {0}

    def test_one_that_ends_early_does_not_stop_the_others(self, tmp_path: Path) -> None:
        every = ranks(tmp_path, "ends")
        assert [len(one[0]) for one in every] == [1000, 1000, 1000, 200]
        assert {one[3] for one in every} == {0}


def test_a_rank_without_a_tuner_is_told() -> None:
    """torch fails so after five minutes, as seen with two processes of which one had a tuner."""
    new_group = Mock(side_effect=RuntimeError("wait timeout"))
    with pytest.raises(InputError, match="every rank needs a tuner, and one has none"):
        Ranks(Mock(distributed=Mock(new_group=new_group)))


class TestCallbacks:
    def job(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeJob:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        return MadeJob(MadeBoard(made_curve()), 0.3)

    def test_steps_begin_and_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By what both trainers call; other calls do nothing."""
        made = self.job(tmp_path, monkeypatch)
        for framework in ("hf", "lightning"):
            tuner = Tuner(None, TuningGoal(), made)
            callback = getattr(tuner, framework)()
            callback.on_train_begin(None, None, None, model=None)
            callback.on_epoch_begin(None, None, None)
            for _ in range(300):
                made.run_step()
                callback.on_step_end(None, None, None)
            assert tuner.state == "set"
            assert made.board.locked_mhz
            callback.on_train_end()
            assert made.board.locked_mhz == 0
            with pytest.raises(AttributeError):
                callback.something_else  # noqa: B018

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")
    def test_in_the_trainer_of_hugging_face(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        transformers = pytest.importorskip("transformers")
        pytest.importorskip("accelerate")
        torch = pytest.importorskip("torch")
        # The repository's folder of that name is no such package.
        monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
        made = self.job(tmp_path, monkeypatch)

        class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def forward(self, x: Any, labels: Any) -> Any:
                made.run_step()
                held.append(made.board.locked_mhz)
                return {"loss": ((self.layer(x) - labels) ** 2).mean()}

        held: list[int] = []
        rows = [{"x": torch.ones(1), "labels": torch.ones(1)} for _ in range(300)]
        tuner = Tuner(None, TuningGoal(), made)
        arguments = transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=1, num_train_epochs=1, report_to=[],
            use_cpu=True, disable_tqdm=True, save_strategy="no",
        )  # fmt: skip
        model = Model()
        transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[tuner.hf()]).train()
        assert (len(held), tuner.state, made.board.locked_mhz) == (300, "set", 0)
        assert held[-1] == tuner.readings[-1].engine_mhz

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("fails", [False, True])
    def test_in_the_trainer_of_lightning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
    ) -> None:
        lightning = pytest.importorskip("lightning")
        torch = pytest.importorskip("torch")
        made = self.job(tmp_path, monkeypatch)
        held: list[int] = []

        class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def training_step(self, batch: Any, _: int) -> Any:
                made.run_step()
                held.append(made.board.locked_mhz)
                if fails and made.board.locked_mhz:
                    raise KeyError
                return self.layer(batch).mean()

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), 0.01)

        tuner = Tuner(None, TuningGoal(), made)
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_model_summary=False, callbacks=[tuner.lightning()], default_root_dir=tmp_path,
        )  # fmt: skip
        loader = torch.utils.data.DataLoader(torch.ones(300, 1))
        if fails:
            with pytest.raises(KeyError):
                trainer.fit(Module(), loader)
        else:
            trainer.fit(Module(), loader)
            assert (len(held), tuner.state) == (300, "set")
            trainer.save_checkpoint(tmp_path / "kept.ckpt")
            trainer.fit_loop.max_epochs = 2
            trainer.fit(Module(), loader, ckpt_path=tmp_path / "kept.ckpt")
            assert (len(held), held[-1]) == (600, held[299])
        assert made.board.locked_mhz == 0
