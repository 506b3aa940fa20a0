"""The report's page, and the pictures of studies.

- The page: `page` (its head, what stands where, how it was made), `whole_run`, `levers` (power
  caps and commands) and `sections` (of a kernel), from the numbers of `kernel_report`. All HTML is
  made in `markup`; `charts`, `labels` and `heat_map` draw.
- Pictures, PNG and SVG each: `style` is what they share. Of Wu et al. `wu2015_figures`,
  `map_figures` and `scaling_figures`; of errors, regrets and features `comparison_figures`.
- `model_contents` is what `mlscale show` prints.
"""
