"""An advice as rows: those that `mlscale advise --format csv` prints."""

import io

import pandas as pd
from synthetic import frugal
from synthetic import kernels as made

from mlscale import train
from mlscale.advice.advise import advise
from mlscale.advice.search import WHOLE_RUN, Advice
from mlscale.cli.text import csv_text

MID = made.GRID.mid
MODEL = train(frugal.measurements(), MID, "nearest")


def advice(count: int) -> Advice:
    profiles = frugal.measurements(per_group=1).profiles(MID)
    return advise(MODEL, profiles.select(range(count)))


class TestFrame:
    def test_it_is_the_csv_of_the_command_line(self) -> None:
        of = advice(2)
        read = pd.read_csv(io.StringIO(csv_text(of.rows())))
        pd.testing.assert_frame_equal(of.to_frame(), read.fillna({"flags": ""}))

    def test_a_row_for_each_best_and_each_point_of_the_front(self) -> None:
        of, frame = advice(2), advice(2).to_frame()
        assert frame["kernel"].unique().tolist() == [*(k.kernel for k in of.kernels), WHOLE_RUN]
        assert frame["best"].sum() == 3
        for one in of.recommendations:
            rows = frame[frame["kernel"] == (one.kernel or WHOLE_RUN)]
            assert rows["on_front"].sum() == len(one.front)
            best = rows[rows["best"] == 1].iloc[0]
            assert best["energy_mj"] == one.best.energy_mj
            assert best["saving_percent"] == one.saving_percent
            assert rows[rows["best"] == 0]["saving_percent"].isna().all()

    def test_of_one_launch_there_is_no_row_of_the_run(self) -> None:
        assert WHOLE_RUN not in advice(1).to_frame()["kernel"].tolist()
