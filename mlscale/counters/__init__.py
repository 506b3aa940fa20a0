"""Counters: the features that predictors compute from them, and what they are in words.

`features` are what predictors take, `utilisation` those from nvprof's counters; `kernel_use` tells
from any counters what a kernel uses of its GPU, `roofline` where it stands between the peaks;
`words` says what each is.
"""
