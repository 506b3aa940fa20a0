"""A reader for each profiler: the rows of its exports to launches."""
