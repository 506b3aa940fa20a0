"""Data: the grid, measurements, profiles, surfaces, devices, and the public data sets.

- Settings and GPUs: `grid`, `devices` (one GPU, and the table of those that are known), `supply`
  (the power that a board supplies, and intervals that end there).
- Tables as they stand in files: `table`, read and written by `table_files`, under other names
  (`column_names`, which reads titles); more than memory holds: `fleet`. Several rows of one kernel
  made one, and cells that nobody measured filled in: `cells`.
- What they become: `measurements` (kernels over a grid), `profiles` (kernels at one base) with
  `points` at other configurations, and `surfaces`, also beyond their grid and summed over a run.
  `logs`: which of them are of monitors' logs, and which have the clocks asked for alone.
- What they may hold by mistake: `checks` is the table of rules, `predicates` what they look at.
- Sets of others: `datasets` by name and checksum, `nv_dvfs` reads those with forms of their own.
"""
