"""Readers of profilers' exports, traces and monitors' logs: files become profiles.

A profiler has one file (`ncu`, `nsys`, `rocprof`, `torch_trace`): its `FORMS` say what its files
look like, and for each a function `read(sheet, facts, needed)` gives `Launches` (launches) of its
rows, block by block. A new one is such a file and its `FORMS` among `reading.PROFILERS`; one that
counts needs its formulas in mapping.json too. A monitor is a function `read(sheet)` in `monitor`,
which gives samples, and a line of its `FORMS`. `reading` is the way through:
`files` opens a file, `launches` sums it up, `join` puts passes and traces of one run together by
`names`, `run` finds the GPU and its clocks, `mapping` makes features of counters, `table` the
table. `monitor` reads logs, `power` a log beside a profile; `given` is what the user says besides.
`kernel_tuner` makes training tables of a tuner's caches.
"""
