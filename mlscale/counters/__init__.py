"""Counters: the device table, and the features that predictors compute from counters."""
