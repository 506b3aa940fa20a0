"""What a tuner measured: kernel_tuner's caches and T4 files (kernel_tuner)."""
