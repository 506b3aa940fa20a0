"""Data sets: the public ones by name and checksum, the shipped ones by path(name)."""

from mlscale.datasets.registry import path

__all__ = ["path"]
