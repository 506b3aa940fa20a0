"""Names of kernels as tables in a terminal show them."""

from mlscale.cli.text import columns, flag_lines, kernel_name, kernel_names


def test_grid_and_block_stay_behind_a_shortened_name() -> None:
    """By hand: 60 characters of the name, 40 and 19 around the ellipsis, and then the geometry."""
    short = kernel_name(f"{'a' * 50}{'b' * 50} [grid 128, block 256]")
    assert short == f"{'a' * 40}…{'b' * 19} [grid 128, block 256]"
    assert kernel_name("k [grid 128, block 256]") == "k [grid 128, block 256]"


def test_names_that_are_shortened_to_the_same_are_numbered() -> None:
    """By hand: what differs is left out of both; the third name stands alone."""
    first, second = (f"{'a' * 45}{middle}{'b' * 45}" for middle in "12")
    names = kernel_names([first, "other", second])
    assert list(names.values()) == [
        f"{kernel_name(first)} (1)",
        "other",
        f"{kernel_name(second)} (2)",
    ]
    assert flag_lines({first: ("x",), second: ("y",)}) == [
        f"flag: {kernel_name(first)} (1): x\n",
        f"flag: {kernel_name(first)} (2): y\n",
    ]


def test_numbers_in_groups_of_three_are_aligned_as_numbers() -> None:
    shown = columns(["mJ", "best"], [["102.8", ""], ["23 557", "best"], ["-", "2 of 3"]])
    assert shown.splitlines()[2:] == [" 102.8", "23 557  best", "     -  2 of 3"]
