"""Advice: the configuration to set.

`advise` is the way through: `search` finds the best configurations by what each `costs`, by the
`objectives` and limits, each becomes a `recommendation`, and all become a `document`, with how sure
it is by `sureness`. `verdict` tells that in a sentence or two, and `commands` what sets it by the
GPU's vendor. `caps` chooses a power cap, by what a run does under each; `capped_runs` tells that of
a run that was read under caps alone. `answer` puts these together for a run: of Python, the command
line and the page. `server_answer` answers for an LLM server: `server_readings` are compared,
`server` finds the clock that keeps the limits of `slo`, and `server_verdict` tells that.
"""
