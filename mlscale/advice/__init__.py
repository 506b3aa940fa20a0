"""Advice: the configuration to set.

`advise` is the way through: `search` finds the best configurations by the `objectives` and limits
and makes each a recommendation, told in one sentence by `verdict`, as JSON by `document`, and as
`commands` of the GPU's vendor. `caps` chooses a power cap, by what a run does under each.
"""
