"""Data sets that are computed from a model, not measured."""
