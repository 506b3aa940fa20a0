"""Names of kernels as tables in a terminal show them."""

from mlscale.cli.text import kernel_name


def test_grid_and_block_stay_behind_a_shortened_name() -> None:
    """By hand: 60 characters of the name, 40 and 19 around the ellipsis, and then the geometry."""
    short = kernel_name(f"{'a' * 50}{'b' * 50} [grid 128, block 256]")
    assert short == f"{'a' * 40}…{'b' * 19} [grid 128, block 256]"
    assert kernel_name("k [grid 128, block 256]") == "k [grid 128, block 256]"
