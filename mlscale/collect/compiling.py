"""CUDA sources to machine code at run time, by NVRTC; needs no GPU."""

from typing import Any

from mlscale.collect.device import EntryError, GpuError
from mlscale.collect.entries import Entry

INSTALL = "pip install 'mlscale[collect]'"


class Compiler:
    """Compiles entries for one architecture, each once."""

    def __init__(self, architecture: str) -> None:
        """architecture: such as 'sm_90'. Raises GpuError where NVRTC is missing."""
        try:
            from cuda.bindings import nvrtc

            supported = _call(nvrtc, nvrtc.nvrtcGetSupportedArchs())
            major, minor = _call(nvrtc, nvrtc.nvrtcVersion())
        except ImportError as error:
            raise GpuError(f"cuda-bindings is not installed ({error}); {INSTALL}") from None
        except RuntimeError as error:
            raise GpuError(f"NVRTC cannot be loaded ({error}); {INSTALL}") from None
        self._nvrtc = nvrtc
        self.version = f"{major}.{minor}"
        number = int(architecture.removeprefix("sm_"))
        older = [arch for arch in supported if arch <= number]
        if not older:
            raise GpuError(
                f"NVRTC {self.version} does not compile for {architecture}, only for compute "
                f"capability {min(supported) / 10:g} and later"
            )
        self._native = number in supported
        self._target = architecture if self._native else f"compute_{max(older)}"
        self._images: dict[str, bytes] = {}

    def image(self, entry: Entry) -> bytes:
        """Machine code, or PTX where the GPU is newer than NVRTC. Raises EntryError."""
        if entry.name not in self._images:
            self._images[entry.name] = self._compile(entry.name, entry.text(), entry.macros())
        return self._images[entry.name]

    def _compile(self, name: str, text: str, macros: dict[str, str]) -> bytes:
        nvrtc = self._nvrtc
        program = _call(nvrtc, nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
        options = [f"--gpu-architecture={self._target}".encode()]
        options += [f"-D{macro}={value}".encode() for macro, value in macros.items()]
        try:
            (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                log = bytes(_call(nvrtc, nvrtc.nvrtcGetProgramLogSize(program)))
                _call(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
                first = next(
                    (line for line in log.decode(errors="replace").splitlines() if line.strip()),
                    status.name,
                ).strip("\0 ")
                raise EntryError(f"kernel '{name}' does not compile for {self._target}: {first}")
            if self._native:
                image = bytes(_call(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
                _call(nvrtc, nvrtc.nvrtcGetCUBIN(program, image))
            else:
                image = bytes(_call(nvrtc, nvrtc.nvrtcGetPTXSize(program)))
                _call(nvrtc, nvrtc.nvrtcGetPTX(program, image))
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return image


def _call(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """What follows the status in a binding's answer. Raises GpuError on a failure."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise GpuError(f"NVRTC failed: {status.name}")
    return values[0] if len(values) == 1 else values
