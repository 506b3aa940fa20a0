"""Data sets that are made, not measured."""
