"""Studies: repeatable error measurements, with everything refitted inside each fold.

- `study`: every study by its name, as a Python user calls it. All share `base`; `parallel`: their
  work on processes or a Dask cluster, kept and taken up again.
- The one loop: `crossval`, over its folds and over a GPU left out, of the predictors in
  `candidates`, with the oracle of Wu et al. beside them; `statistics` sums errors up, also those of
  a model that was just trained.
- `errors` of predictors, and `regret` of advice; `figures` draws both, and surfaces.
- `fleet` is no study, but spread and resumed as they are.
"""
