"""`board-power`: power of any GPU over its clocks, learnt from other GPUs' (decision 0016)."""
