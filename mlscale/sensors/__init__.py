"""What a GPU's sensors say while a program runs, and its clocks, set and put back.

In the order in which it happens: `boards` finds the GPUs, each a `board` of `nvidia` (NVML) or
`amd` (AMD SMI); `clocks` sets and puts back, also after a kill; `program` runs what is measured;
`recorder` samples meanwhile; `log` writes the samples as nvidia-smi names them, reads them as
`advise` does, and says what is amiss. `meter` is all of it for a block of Python.
"""
