"""The shipped models' figures, so that a drift is seen: on data that ship, and on made data.

FIGURES are regression only: what the models gave when they were written down, to 5 %. They are no
claim of accuracy: the made kernels' laws are not those of real GPUs, the simulated model is
asked for kernels that it was trained on, but for `fastwalshtransform`, and so is nvidia-sampled.
"""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import two_clocks
from synthetic import bottleneck_kernels as made
from synthetic import sampled_kernels

from mlscale import ConfigGrid, HardwareConfig, Measurements, read
from mlscale.data.public import path
from mlscale.model_file import load
from mlscale.shipped import model_for
from mlscale.studies.extrapolation import without_edge

TOLERANCE = 0.05
DOCS = Path(__file__).parents[1] / "docs"
UNSEEN = "fastwalshtransform"
GTX980 = ConfigGrid((16,), (600.0, 900.0, 1126.0), (2000.0, 3000.0, 3150.0))
BOARDS = {  # CUs and memory clock of the sampled models' boards
    "a100": ("a100-sxm4-80gb", 108, 1593.0),
    "a100-nvidia-smi": ("a100-sxm4-80gb", 108, 1593.0),
    "rtx8000": ("rtx8000", 72, 6500.0),
    "v100": ("v100", 80, 877.0),
}
FIGURES = {
    "simulated-gcn3": {"time": 2.712, "half_width": 14.38},
    "simulated-gcn3, unseen": {"time": 10.85, "half_width": 25.08},
    "nvidia-time": {"time": 1.289, "half_width": 8.019, "power": 14.00},
    "a100": {"time": 10.36, "half_width": 11.78, "power": 9.904},
    "a100-nvidia-smi": {"time": 9.175, "half_width": 11.80, "power": 9.829},
    "rtx8000": {"time": 2.157, "half_width": 3.501, "power": 5.634},
    "v100": {"time": 3.861, "half_width": 5.467, "power": 7.664},
}


@cache
def figures(case: str) -> dict[str, float]:
    """Mean errors [%] of time and power, and mean half-width of the times' intervals [%].

    Over all kernels and configurations without the base, by the shipped model.
    """
    data, base = data_of(case)
    profiles = data.profiles(base)
    targets = [config for config in data.grid if config != base]
    model = model_for(load(path(f"{case.partition(',')[0]}.mlscale")), profiles, targets)
    columns = model.predict(profiles, 0.9).columns(targets)
    low, high = columns["time_ms_low"], columns["time_ms_high"]
    errors = {"half_width": 50 * float(((high - low) / columns["time_ms"]).mean())}
    for quantity, column in (("time", "time_ms"), ("power", "power_w")):
        if quantity == "power" and np.isnan(columns[column]).all():
            continue
        at = [data.grid.index(config) for config in targets]
        measured = np.array([data.quantity(quantity)[(slice(None), *index)] for index in at])
        errors[quantity] = 100 * float(np.abs(columns[column] / measured.T.ravel() - 1).mean())
    return errors


def data_of(case: str) -> tuple[Measurements, HardwareConfig]:
    """What a model is asked for, and from which base."""
    name, _, unseen = case.partition(",")
    if name in BOARDS:
        data = sampled_kernels.measurements(30, seed=1)
        for end in ("lowest", "highest"):  # between the trained clocks of all three boards
            data = without_edge(data, ("engine_mhz", end))
        device, cus, memory_mhz = BOARDS[name]
        if name.endswith("nvidia-smi"):
            data = data.without_counters(["sm_active"])
            data = replace(data, counter_names=("memory_copy_utilisation",))
        else:
            data = without_tensor_cores(data)
        grid = ConfigGrid((cus,), data.grid.engine_mhz, (memory_mhz,))
        return replace(data, device=device, grid=grid), grid.mid
    if name == "nvidia-time":
        return made.measurements(24, seed=1, grid=GTX980), GTX980.mid
    data = read(path("simulated-gcn3.parquet"))
    chosen = [(application == UNSEEN) == bool(unseen) for application in data.applications]
    return data.select(np.array(chosen)), data.grid.config("cu=16,engine=800,memory=700")


def without_tensor_cores(data: Measurements) -> Measurements:
    """The kernels, known to use none."""
    none = np.zeros((*data.counter_samples.shape[:-1], 1))
    return replace(
        data,
        counter_names=(*data.counter_names, "tensor_active"),
        counter_samples=np.concatenate([data.counter_samples, none], axis=-1),
    )


@pytest.mark.parametrize(("case", "figure"), [(c, f) for c in FIGURES for f in FIGURES[c]])
def test_figures_have_not_drifted(case: str, figure: str) -> None:
    """Regression only."""
    assert figures(case)[figure] == pytest.approx(FIGURES[case][figure], rel=TOLERANCE)


FROM_READINGS = {"time": 2.040, "power": 2.941, "power from one": 5.884}


@pytest.mark.parametrize("quantity", FROM_READINGS)
def test_figures_from_two_readings_have_not_drifted(quantity: str) -> None:
    """Regression only: mean errors [%] on an RTX 3060, which the model learnt from."""
    model, table = load(path("nvidia-sampled.mlscale")), path("headroom-rtx3060.csv")
    rows = [two_clocks.figures(model, "rtx3060", sweep) for sweep in two_clocks.read_own(table)]
    error = np.mean([row[f"{quantity}: error"] for row in rows])
    assert error == pytest.approx(FROM_READINGS[quantity], rel=TOLERANCE)


def quoted(page: str, command: str, row: str) -> dict[str, float]:
    """A row of the means that a page shows below a command, by column: 'a100 time' and so on."""
    text = (DOCS / page).read_text(encoding="utf-8")
    block = text[text.index(f"$ {command}") :].partition("\n```")[0]
    [header] = re.findall(r"^predictor .*$", block, re.MULTILINE)
    [line] = re.findall(rf"^{row} .*$", block, re.MULTILINE)
    columns = re.split(r"\s{2,}", header.strip())[2:]
    return dict(zip(columns, map(float, re.findall(r"[\d.]+", line)), strict=True))


def test_the_card_of_any_gpu_has_the_figures_of_its_page() -> None:
    card = load(path("nvidia-time.mlscale")).card
    page = quoted("errors.md", card["time_on_gpus_left_out_from"], "bottleneck")
    for table, held_out in card["time_on_gpus_left_out"].items():
        assert page[f"{table} time"] == pytest.approx(held_out["mean_error_percent"], abs=0.051)


def test_the_cards_of_sampled_models_have_the_figures_of_their_page() -> None:
    """A model from nvidia-smi's averages has its own on the page of sampled profiles, as shown."""
    page = quoted("measured-errors.md", "mlscale study errors a100.parquet", "sampled")
    sampled = (DOCS / "sampled-errors.md").read_text(encoding="utf-8")
    for name in BOARDS:
        errors = load(path(f"{name}.mlscale")).card["mean_errors_percent"]
        if name.endswith("nvidia-smi"):
            each = [f"{at} {in_words(own)}" for at, own in errors.items()]
            assert f"\nmean errors percent: {'; '.join(each)}\n" in sampled
            continue
        for quantity, error in errors["mid"].items():
            assert page[f"{name} {quantity}"] == pytest.approx(error, abs=0.051)


def in_words(errors: dict[str, float]) -> str:
    return ", ".join(f"{quantity} {error:g}" for quantity, error in errors.items())
