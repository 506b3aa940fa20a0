"""Advice: the configuration to set, and where to measure next."""
