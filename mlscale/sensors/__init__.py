"""What a GPU's sensors say while a program runs, and its clocks, set and put back.

In the order in which it happens: `boards` finds the GPUs, by NVML or AMD SMI; `clocks` sets and
puts back, also after a kill; `program` runs what is measured; `recorder` samples meanwhile; `log`
writes the samples as nvidia-smi names them, reads them as `advise` does, says what is amiss, and
does all of it for a block of Python; `steps` does it for the steps of a loop.
"""
