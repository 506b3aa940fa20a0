"""Every source compiles with NVIDIA's own compiler, which needs no GPU.

Needs `pip install cuda-bindings nvidia-cuda-nvrtc` (or their versions for CUDA 12: `==12.*`,
`nvidia-cuda-nvrtc-cu12`), and is skipped without.
"""

import pytest

from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Entry, entries, probes

nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-python is not installed")
try:
    nvrtc.nvrtcVersion()
except RuntimeError:
    pytest.skip("NVRTC is not installed", allow_module_level=True)
H100 = DeviceInfo("cuda", "made", "u", "d", 132, 50 << 20, 32, capability=90)
EVERY = [*entries("full"), *entries("small"), *(entry for _, entry in probes(H100))]
BY_SOURCE = {(entry.source, *entry.macros.items()): entry for entry in EVERY}


@pytest.mark.parametrize("entry", BY_SOURCE.values(), ids=lambda entry: entry.name)
def test_to_the_machine_code_of_an_h100(entry: Entry) -> None:
    """With kernel_tuner's macros and option; `sm_90` checks what PTX leaves open."""
    from kernel_tuner.core import KernelSource

    source = KernelSource(entry.name, entry.text, "CUDA", {"KERNEL": entry.name, **entry.macros})
    block = (entry.block, 1, 1)
    names = ["block_size_x", "block_size_y", "block_size_z"]
    name, text, _ = source.prepare_list_of_files(entry.name, {}, (1, 1, 1), block, names)
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"made", 0, [], [])
    nvrtc.nvrtcAddNameExpression(program, name.encode())
    options = [b"--std=c++11", b"--gpu-architecture=sm_90"]
    [status] = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    assert nvrtc.nvrtcGetLoweredName(program, name.encode())[1] == entry.name.encode()
