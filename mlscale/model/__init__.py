"""A trained model, from profiles to predictions.

`model` trains and predicts; `predictions` are absolute numbers, which `plots` draws and
`prediction_table` writes as CSV and Parquet; `unprofiled` fills in kernels without counters.
`model_file` keeps a model in a file, `shipped` chooses among those that come with the package.
"""
