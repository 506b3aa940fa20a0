"""How training `bottleneck` grows with the kernels: seconds, memory and error beside two peers.

The made kernels of `scaling` over clocks; each size and each peer in a process of its own. The
error is of 500 further kernels of the same drawing, so siblings of the training kernels. The peers
are scikit-learn's, from standardised logarithms of Table II's counters to the log time ratios. The
Gaussian process takes its lengths and its noise from 100 of the kernels: with many, the gradient
of its likelihood needs an array of kernels^2 x configurations.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scaling import made_kernels
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from table import Row
from timing import in_own_process, peak_mib, timed

from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.predictors import create

KERNELS = (30, 300, 3000, 10_000)
SHAPE = (1, 10, 5)
HELD_OUT, FOR_LENGTHS, SEED = 500, 100, 0

Floats = NDArray[np.float64]
Predict = Callable[[Profiles], Floats]


def train_mlscale(data: Measurements) -> Predict:
    """`bottleneck` for time, with the fits that its intervals rest on."""
    model = create("bottleneck").fit(data, data.grid.mid)
    return lambda profiles: np.asarray(model.predict(profiles).values)


def train_process(data: Measurements) -> Predict:
    """A Gaussian process with a length for each counter."""
    counters, logs = _peer_data(data)
    scaler = _scaler()
    points = scaler.fit_transform(counters)
    prior = ConstantKernel() * RBF(np.ones(points.shape[1])) + WhiteKernel(0.1)
    some = slice(FOR_LENGTHS)
    process = GaussianProcessRegressor(prior, normalize_y=True).fit(points[some], logs[some])
    if len(points) > FOR_LENGTHS:
        process = GaussianProcessRegressor(process.kernel_, optimizer=None, normalize_y=True)
        process.fit(points, logs)
    return _predictor(data, lambda own: process.predict(scaler.transform(own)))


def train_trees(data: Measurements) -> Predict:
    """A hundred extremely randomised trees, on all cores."""
    trees = make_pipeline(_scaler(), ExtraTreesRegressor(n_jobs=-1, random_state=SEED))
    trees.fit(*_peer_data(data))
    return _predictor(data, trees.predict)


def _scaler() -> Pipeline:
    return make_pipeline(FunctionTransformer(np.log1p), StandardScaler())


def _peer_data(data: Measurements) -> tuple[Floats, Floats]:
    """Counters (n, F) and log time ratios (n, N)."""
    base = data.grid.mid
    ratios = data.relative("time", base).reshape(-1, data.grid.size)
    return data.profiles(base).counters, np.log(ratios)


def _predictor(data: Measurements, logs: Callable[[Floats], Floats]) -> Predict:
    return lambda profiles: np.exp(logs(profiles.counters)).reshape(-1, *data.grid.shape)


TRAIN = {
    "mlscale": train_mlscale,
    "GaussianProcessRegressor": train_process,
    "ExtraTreesRegressor": train_trees,
}


FIGURES = {
    "processor": ("processor seconds", "{:.2f} s"),
    "predict": ("predict as many", "{:.2f} s"),
    "peak": ("its peak memory", "{:.0f} MiB"),
    "error": (f"error of {HELD_OUT} others", "{:.2f} %"),
}


def measure(who: str, count: int) -> dict[str, float]:
    """Seconds to train and to predict as many, peak memory [MiB], and the error [%]."""
    data = made_kernels(count + HELD_OUT, SHAPE)
    base = data.grid.mid
    training, held_out = data.select(range(count)), data.select(range(count, count + HELD_OUT))
    if who == "mlscale":
        import torch  # noqa: F401, which the first fit imports: the peers' parts are there too
    predict, of_training = timed(lambda: TRAIN[who](training))
    _, of_predicting = timed(lambda: predict(training.profiles(base)))
    peak = peak_mib()
    off = np.abs(predict(held_out.profiles(base)) / held_out.relative("time", base) - 1)
    return {
        "train": of_training.wall_s,
        "processor": of_training.processor_s,
        "predict": of_predicting.wall_s,
        "peak": peak,
        "error": 100 * float(off.mean()),
    }


def rows() -> Iterator[Row]:
    """For each size and peer the seconds, the memory and the error."""
    configurations = int(np.prod(SHAPE))
    for count in KERNELS:
        ours, *others = (in_own_process(measure, who, count) for who in TRAIN)
        for peer, theirs in zip([*TRAIN][1:], others, strict=True):
            what = f"train {count} kernels x {configurations} configurations"
            peer_is = f"scikit-learn's {peer}"
            yield Row.beside(what, ours["train"], theirs["train"], "{:.2f} s", peer_is)
            for name, (what, form) in FIGURES.items():
                yield Row.beside(f"  {what}", ours[name], theirs[name], form)
