"""`board-power`: power of any GPU over its clocks, learnt from other GPUs' (decision 0016).

`estimator` is the predictor, `curve` its formula over the engine clock, `population` what it has
learnt of how runs differ, and `memory_clock` its rule for other memory clocks.
"""
