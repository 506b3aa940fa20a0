"""Advice: the configuration to set.

`advise` is the way through: `search` finds the best configurations by the `objectives` and limits,
each becomes a `recommendation`, told in one sentence by `verdict`, and as `commands` of the GPU's
vendor. `caps` chooses a power cap, by what a run does under each; `capped_runs` tells that of a run
that was read under caps alone.
"""
