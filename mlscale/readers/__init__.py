"""Readers of profilers' exports, traces and monitors' logs: files become profiles.

`registry` has a line for each kind of file: by what it is known, and which module reads it. `ncu`,
`nsys`, `rocprof` and `torch_trace` read launches, `monitor` samples, `serving` results of
benchmarks of LLM servers; each has one function `read`, and is imported when a file of its own is
met. A new one is such a module and a line of the registry; one that counts needs its formulas in
mapping.json too.

A `source` is a file that a user names, opened, known and read once, whoever asks; `given` is what
the user says besides. `reading` is the way through: `files` opens a file, whose `columns` come in
blocks, `launches` sums them up, `join` puts passes and traces of one run together, `run` finds the
GPU and its clocks, `mapping` makes features of counters, `table` the table. `busy_span` finds the
run in a log of one GPU, whose columns `log_columns` tells by their titles; `log_table` makes a row
of all GPUs side by side, `power` the power of a profile. `kernel_tuner` makes training tables of a
tuner's caches.
"""
