"""mlscale: run a GPU kernel once and know how it would run anywhere."""

__version__ = "0.1.0"
