"""Data: the grid, measurements, profiles, surfaces, devices, and the public data sets."""
