"""Kernels that exchange data between GPUs: they wait for links and for the other GPUs."""

import re

# Names that NCCL, RCCL, MSCCL++, NVSHMEM, vLLM, TensorRT-LLM and torch give, in lower case.
_EXCHANGES = re.compile(
    r"(nccl|rccl|msccl)[a-z]*kernel|nvshmem|cross_device_reduce|multimem_all_reduce"
    r"|(one|two)_?shot_?all_?reduce|all_?reduce_?(one|two)_?shot|allreduce_(fusion|prototype)"
)


def is_exchange(kernel: str) -> bool:
    """Whether a kernel exchanges data between GPUs, by its name."""
    name = kernel.lower()
    may_match = "ccl" in name or "nvshmem" in name or "reduce" in name  # much quicker to tell
    return may_match and bool(_EXCHANGES.search(name))
