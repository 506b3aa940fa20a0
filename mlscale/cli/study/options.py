"""Options that several studies share."""

import argparse
from typing import Any

from mlscale.cli import options, outputs, values
from mlscale.data.profiles import QUANTITIES
from mlscale.predictors.wu.estimator import DEFAULT_CLUSTERS

TABLE_FORMATS = ("csv", "parquet")
AGAIN = "may be given again"


class Once(argparse.Action):
    """Keeps one value, and refuses a second one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Keep the value."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "may be given once")
        setattr(namespace, self.dest, values)


def add_predictors(parser: argparse.ArgumentParser, default: str, several: bool = True) -> None:
    """Add the option that says who predicts."""
    parser.add_argument(
        "--predictor",
        dest="predictors",
        action=_action(several),
        type=values.predictor_name,
        metavar="PREDICTOR",
        help=f"{values.predictor_names()}{'; ' + AGAIN if several else ''} "
        f"(default: {default}); the baselines stand beside",
    )
    options.add_wu(parser)


def add_features(parser: argparse.ArgumentParser, several: bool = True) -> None:
    """Add the option that says what is computed from the counters."""
    from mlscale.counters.features import FEATURE_KINDS, WITH_POWER

    parser.add_argument(
        "--features",
        action=_action(several),
        choices=(*FEATURE_KINDS, *(kind + WITH_POWER for kind in FEATURE_KINDS)),
        help="what is computed from the counters; +power adds the power at the base, in studies of "
        f"power alone{'; ' + AGAIN if several else ''} (default: what suits the counters)",
    )


def _action(several: bool) -> Any:
    return "append" if several else Once


def add_quantities(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what is predicted."""
    parser.add_argument(
        "--quantity",
        action="append",
        choices=tuple(QUANTITIES),
        help=f"what is predicted; {AGAIN} (default: both, where the table has power)",
    )


def add_base(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the profile is taken, at one configuration."""
    parser.add_argument(
        "--base",
        action=Once,
        type=values.configuration,
        help="configuration to predict from, 'mid' (default) or 'highest': every axis at its top",
    )


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how many clusters there are."""
    parser.add_argument(
        "--clusters",
        type=values.cluster_count,
        metavar="K",
        help="number of clusters in each cluster set of wu, or 'auto': chosen inside each fold "
        f"(default: {DEFAULT_CLUSTERS}, or the number of training kernels if smaller)",
    )


def add_common(
    parser: argparse.ArgumentParser, files: str, split: str = "leave-one-application-out"
) -> None:
    """Add the options of tables, of who is held out, of results, and of where the work is done.

    files: what is written beside study.json. split: who is held out by default.
    """
    from mlscale.studies.splits import SPLITS

    parser.add_argument("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    parser.add_argument(
        "--protocol",
        dest="split",
        choices=SPLITS,
        help="who is held out: kernels of one application together, except by random-kernels, "
        f"which draws 20 %% of the kernels as Wu et al. did (default: {split})",
    )
    parser.add_argument(
        "--seeds",
        type=values.whole_number,
        metavar="N",
        help="repeat with the seeds 0 to N-1 (default: 12 where who is held out is drawn at "
        "random, else 3); 1 for a single split",
    )
    options.add_reading(parser)
    outputs.add_results(parser, f"study.json and {files}, and for what --resume needs")
    parser.add_argument(
        "--format",
        choices=TABLE_FORMATS,
        default="csv",
        help="format of the tables in -o DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the unfinished study in -o DIR"
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, such as tcp://host:8786",
    )
