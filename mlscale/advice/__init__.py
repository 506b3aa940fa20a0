"""Advice: the configuration to set.

`advise` is the way through: `search` finds the best configurations by the `objectives` and limits;
each becomes a `recommendation`, told in one sentence
by `verdict`, as JSON by `document`, and as `commands` of the GPU's vendor. `cap_advice` chooses a
power cap, by what `caps` says a run does under each; `exchange` tells of kernels that exchange data
between GPUs.
"""
