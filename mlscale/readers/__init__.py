"""Readers of profilers' exports, traces and monitors' logs: files become profiles.

`registry` has a line for each kind of file: by what it is known, and which module reads it. `ncu`,
`nsys`, `rocprof` and `torch_trace` read launches, `monitor` samples, `serving` results of
benchmarks of LLM servers; each has one function `read`, and is imported when one of its files is
met. A new reader is such a module and a line of the registry; one with counters also needs its
formulas in mapping.json.

A `source` is a file that a user names, opened, identified and read once; `given` is what the user
states besides. `reading` is the whole path: `files` opens a file, whose `columns` come in blocks,
`launches` sums them up, `join` combines passes and traces of one run, `run` finds the GPU and its
clocks, `mapping` computes features from counters, `table` makes the table. `busy_span` finds the
run in a log of one GPU, whose columns `log_columns` identifies by their titles; `log_table` makes
a row of all GPUs side by side, `power` adds power to a profile. `kernel_tuner` makes training
tables from a tuner's caches.
"""
