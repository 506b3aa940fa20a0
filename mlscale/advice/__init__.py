"""Advice: the configuration to set.

`advise` is the way through: `search` finds the best configurations by the `objectives` and limits,
and each becomes a `recommendation`, with how sure it is by `sureness`. `caps` chooses a power cap,
by what a run does under each; `capped_runs` tells that of a run that was read under caps alone. Of
an LLM server `server_readings` are compared, and `server` finds the clock that keeps its limits;
`server_caps` the cap; `server_answer` makes the answer, and sets several numbers of clients side by
side. `answer` makes one value of all these, which `document` writes as JSON, `verdict` tells in a
sentence or two, and `commands` sets by the GPU's vendor.
"""
