"""Data sets: public ones by name and checksum (fetching.fetch), shipped ones by path(name)."""

from mlscale.data.public.registry import path

__all__ = ["path"]
