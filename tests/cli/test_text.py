"""Tables in a terminal."""

from mlscale.cli.text import columns


def test_numbers_in_groups_of_three_are_aligned_as_numbers() -> None:
    shown = columns(["mJ", "best"], [["102.8", ""], ["23 557", "best"], ["-", "2 of 3"]])
    assert shown.splitlines()[2:] == [" 102.8", "23 557  best", "     -  2 of 3"]
