"""What the rows of the studies of section V show together, by hand."""

import pytest
from synthetic.study_rows import row

from mlscale import HardwareConfig
from mlscale.studies import wu2015_summary


class TestSummary:
    # Two bases at 300 MHz, one at 500; two seeds each.
    ROWS = (
        row(10, (4, 300, 475)), row(20, (4, 300, 475), seed=1),
        row(30, (8, 300, 475)), row(50, (8, 300, 475), seed=1),
        row(7, (8, 500, 475)), row(5, (8, 500, 475), seed=1),
        row(90, (8, 500, 475), clusters=None, predictor="nearest"),
    )  # fmt: skip

    def test_labels(self) -> None:
        assert wu2015_summary.labels(self.ROWS) == ["wu 12", "nearest"]
        assert wu2015_summary.labels(self.ROWS, "nearest") == ["nearest"]

    def test_by_base(self) -> None:
        found = wu2015_summary.by_base(self.ROWS)["wu 12"]
        assert found[HardwareConfig(4, 300, 475)] == wu2015_summary.Spread(15, 10, 20, 5)
        assert found[HardwareConfig(8, 300, 475)] == wu2015_summary.Spread(40, 30, 50, 10)
        assert found[HardwareConfig(8, 500, 475)] == wu2015_summary.Spread(6, 5, 7, 1)

    def test_overall(self) -> None:
        """Means of the seeds: (10 + 30 + 7) / 3 and (20 + 50 + 5) / 3."""
        found = wu2015_summary.overall(self.ROWS)
        assert found["wu 12"].low == pytest.approx(47 / 3)
        assert found["wu 12"].high == pytest.approx(25)
        assert found["wu 12"].mean == pytest.approx((47 / 3 + 25) / 2)
        assert found["nearest"] == wu2015_summary.Spread(90, 90, 90, None)

    def test_boxes(self) -> None:
        """Fig. 12: 15 and 40 have the mean 27.5 and the standard deviation 12.5."""
        found = wu2015_summary.boxes(self.ROWS)["wu 12"]
        assert list(found) == [300, 500]
        assert found[300] == wu2015_summary.BoxStatistics(2, 27.5, 12.5, 15, 40)
        assert found[500] == wu2015_summary.BoxStatistics(1, 6, 0, 6, 6)

    def test_shares_pool_the_bases(self) -> None:
        """Seed 0: 3 of 4 and 1 of 4 values; seed 1: half and half."""
        counts = {(0, 4): (1, 1), (0, 8): (2, 0), (1, 4): (2, 0), (1, 8): (0, 2)}
        rows = [
            {**row(0, (cu, 300, 475), seed), "bin_low": low, "count": count}
            for (seed, cu), of_bins in counts.items()
            for low, count in zip((0.0, 10.0), of_bins, strict=True)
        ]
        found = wu2015_summary.shares(rows)["wu 12"]
        assert found[0.0] == wu2015_summary.Spread(62.5, 50, 75, 12.5)
        assert found[10.0] == wu2015_summary.Spread(37.5, 25, 50, 12.5)
