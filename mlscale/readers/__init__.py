"""Readers of profilers' exports, traces and monitors' logs: files become profiles.

A reader is one file, as `nsys`: its `FORMS` say what its files look like, and for each a function
`read(sheet, facts, needed)` gives `Launches` (launches) of its rows, block by block. A new one is
that file and a line of `FORMS` below. `files` opens a file, `launches` sums it up, `join` puts
passes and traces of one run together by `names`, `mapping` makes features of counters, `run`
finds the GPU and its clocks and makes the table. `monitor` reads logs, `power` a log beside a
profile.
"""
