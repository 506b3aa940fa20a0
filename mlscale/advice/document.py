"""An advice as JSON values, as docs/file-formats.md describes them."""

from dataclasses import asdict

from mlscale.advice.objectives import OBJECTIVES
from mlscale.advice.search import Advice, Recommendation, Row
from mlscale.advice.verdict import verdict
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE


def run_document(model: Model, advice: Advice) -> Row:
    """The advice for the whole run."""
    return {
        "device": model.device,
        "base": model.base.as_dict(),
        "verdict": verdict(advice),
        "objective": advice.objective,
        "unit": OBJECTIVES[advice.objective],
        "limits": asdict(advice.limits),
        "static_power_w": advice.static_power_w,
        "coverage": COVERAGE,
        "whole_run": {
            **asdict(advice.run),
            **_nested(advice.whole_run),
            "measured": [point.row() for point in advice.measured],
        },
        "warnings": list(advice.warnings),
    }


def kernel_document(kernel: Recommendation) -> Row:
    """A kernel's recommendation, and what becomes of it in the whole run."""
    row: Row = {"kernel": kernel.kernel, **kernel.part_of_run(), **_nested(kernel)}
    if kernel.share:
        slowdown = {"slowdown_percent": kernel.slowdown_in_run_percent}
        row["at_whole_run_best"] = {**kernel.share.at_best.row(), **slowdown}
    return row


def _nested(recommendation: Recommendation) -> Row:
    return {
        "best": recommendation.best.row(),
        "at_base": recommendation.base.row(),
        **recommendation.effects(),
        "front": [point.row() for point in recommendation.front],
        "flags": list(recommendation.flags),
    }
