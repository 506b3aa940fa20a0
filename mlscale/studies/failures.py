"""What is told where a predictor of the user's own fails in a study."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from mlscale.errors import InputError
from mlscale.predictors.base import Predictor


@contextmanager
def own_failures(
    predictor: Predictor | type[Predictor], step: str, device: str | None = None
) -> Iterator[None]:
    """Make an InputError of whatever a predictor that is not part of mlscale raises.

    step: the method that is called; device: of the table. The message names the last line of the
    predictor's own package. What predictors of mlscale raise is a fault of ours and stays as it is.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        kind = predictor if isinstance(predictor, type) else type(predictor)
        package = kind.__module__.partition(".")[0]
        if package == "mlscale":
            raise
        place = ""
        for frame, line in walk_tb(error.__traceback__):
            if str(frame.f_globals.get("__name__")).partition(".")[0] == package:
                place = f" ({Path(frame.f_code.co_filename).name}, line {line})"
        where = f" on {device}" if device else ""
        raise InputError(
            f"predictor '{predictor.name}' failed in {step}{where}: "
            f"{type(error).__name__}: {error}{place}"
        ) from error
