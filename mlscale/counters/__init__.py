"""Counters: the features that predictors compute from them, and what kernels use of their GPU.

`features` are what predictors take, those from nvprof's counters among them; `kernel_use` says from
any counters what a kernel uses of its GPU, `roofline` where it stands between the peaks.
"""
