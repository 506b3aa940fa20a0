"""Studies: repeatable error measurements, with everything refitted inside each fold.

- `study`: every study by its name; `validation`: that of errors, as a Python user calls it. They
  share `base`; `parallel`: their work on processes or a Dask cluster, kept and taken up again.
- The one loop: `crossval`, over its folds, of the predictors in `candidates`, with the oracle of
  Wu et al. beside them; `statistics` sums errors up.
- `errors` of predictors, and `regret` of advice, that of runs on a `left_out_gpu` too; `figures`
  draws both, and surfaces.
- `quick_check` says how far off a model is that was just trained.
- `fleet` is no study, but spread and resumed as they are.
"""
