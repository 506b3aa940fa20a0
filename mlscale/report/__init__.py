"""The report's page.

- The page: `page` (its head, what stands where, how it was made), `whole_run`, `levers` (power
  caps and commands) and `sections` (of a kernel), from the numbers of `kernel_report`. All HTML is
  made in `markup`; `charts`, `labels` and `heat_map` draw.
- `model_contents` is what `mlscale show` prints.
"""
