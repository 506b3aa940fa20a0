"""Studies: repeatable error measurements, with everything refitted inside each fold.

- What every study is: `base`; all by name: `study`. Its parts are spread, kept and resumed by
  `parallel`, over a cluster by `dask_client`.
- The one loop: `crossval`, over the folds of `splits`, of the predictors in `candidates`, with the
  `oracle` beside them, or trained on other tables (`train_on`); `statistics` sums errors up.
- Of any predictor: `errors`, `regret` (of advice, towards a `goal`), `next_point`,
  `extrapolation`.
- Of Wu et al.: `wu2015` and `wu2015_summary`, and of `wu` alone (`of_wu`) `classifier` and
  `importance`.
- `fleet` is no study, but spread and resumed as they are.
"""
