"""Data sets: public ones by name and checksum (fetching.fetch), shipped ones by path(name).

`registry` names them all; the public ones are read by `nv_dvfs`, and `sampled_forms` knows the
forms of those that DCGM's averages come in.
"""

from mlscale.data.public.registry import path

__all__ = ["path"]
