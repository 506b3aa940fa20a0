"""`sampled`: time and power over the engine clock from one sampled profile (decision 0015)."""
