"""Counters: the features that predictors compute from them, and what they are in words."""
