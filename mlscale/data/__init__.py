"""Data: the grid, measurements, profiles, surfaces, devices, and the public data sets.

- Settings and GPUs: `grid`, `device` (one GPU), `device_table` (those that are known), `supply`
  (the power that a board supplies, and intervals that end there).
- Tables as they stand in files: `table`, read and written by `table_files` with `parquet` and
  `arrow`; more than memory holds: `fleet`. Several rows of one kernel made one: `repetitions`.
- What they become: `measurements` (kernels over a grid), `profiles` (kernels at one base) with
  `points` at other configurations and `weights`, and `surfaces`, which `extrapolation` carries
  beyond their grid; summed over a run in `sequence`. `exchanges` knows by their names the kernels
  that exchange data between GPUs.
- What is checked: `completeness` (every configuration measured), `plausibility` (nothing of
  another unit or run), `sampled` (profiles of monitors), `same_work` and `further_kernels` (further
  runs).
- Sets of others: folder `public`.
"""
