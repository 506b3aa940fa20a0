"""gpu.json: what is written of a simulated GPU, and what reads it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic.micro_benchmarks import GPU, PROBES, SAMPLES
from synthetic.tidy import refused

from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers import volkov
from mlscale.papers.gpu_file import gpu_document, read_gpu_file, read_gpu_parameters
from mlscale.papers.micro_benchmarks import measured_cycles, wang_chu_row
from mlscale.papers.wang_chu_inputs import gpu_of_row

ALL = pd.concat(SAMPLES)


def document_of(samples: pd.DataFrame, key: str = GPU.key) -> dict[str, Any]:
    return gpu_document(key, GPU.name, GPU.wave_size, samples, PROBES)


def test_what_is_written() -> None:
    """At one setting; then of a GPU that the device table lacks, then with a benchmark missing."""
    document = document_of(SAMPLES[1])
    assert document["device"] == "gtx980"
    assert document["wang_chu"]["l2_latency"] == pytest.approx(222, rel=0.05)
    assert len(document["volkov"]) == 35
    assert document_of(SAMPLES[1], "another")["wang_chu"] is None
    few = SAMPLES[1].query("kernel != 'dram_delay_1'")
    with pytest.raises(InputError, match="micro-benchmarks failed: dram_delay_1"):
        document_of(few)


@pytest.fixture
def gpu_file(tmp_path: Path) -> Path:
    """gpu.json of the simulated GPU at all settings."""
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(document_of(ALL)))
    return path


class TestGpuFile:
    def test_wang_chu_takes_it(self, gpu_file: Path) -> None:
        """The fit above, read again."""
        gpu, device = read_gpu_file(gpu_file), load_device("gtx980")
        fitted = gpu_of_row(device, wang_chu_row(measured_cycles(ALL, PROBES)[0], device))
        assert gpu.parameters is not None
        assert gpu.parameters.key == "gtx980"
        assert gpu.parameters.l2_latency == pytest.approx(222, rel=0.05)
        for name in ("dram_latency_slope", "dram_delay_offset", "shared_delay", "fp64_delay"):
            assert getattr(gpu.parameters, name) == pytest.approx(getattr(fitted, name))

    @pytest.mark.parametrize("number", ["1" * 400, '"x"', "-1", "NaN", "1e300", "1e-300"])
    def test_a_number_that_cannot_be_names_the_file(self, gpu_file: Path, number: str) -> None:
        document = json.loads(gpu_file.read_text())
        document["compute_unit"]["issue_per_cycle"] = "NUMBER"
        gpu_file.write_text(json.dumps(document).replace('"NUMBER"', number))
        with refused(f"^{gpu_file}: "):
            read_gpu_file(gpu_file)

    def test_the_survey_takes_it(self, gpu_file: Path) -> None:
        """The simulated GPU meets the classical bounds: off by its noise and the fit's."""
        gpu = read_gpu_file(gpu_file)
        assert len(gpu.volkov) == 35
        keys = ("warps", "intensity", "ipc")
        n, alpha, ipc = (np.array([point[key] for point in gpu.volkov]) for key in keys)
        off = {
            name: 100 * np.abs(volkov.MODELS[name](n, alpha, gpu.compute_unit) / ipc - 1).mean()
            for name in ("classical bounds", "Chen & Aamodt 1")
        }
        assert off["classical bounds"] < 5
        assert off["Chen & Aamodt 1"] > 50  # one warp's throughput at any occupancy

    @pytest.mark.parametrize("content", ["{}", '{"device": "gtx980", "wang_chu": {}}', '{"a": 1}'])
    def test_another_file(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "other.json"
        path.write_text(content)
        with refused("is not a gpu.json of 'mlscale collect --micro'"):
            read_gpu_file(path)

    def test_a_gpu_that_the_device_table_lacks(self, gpu_file: Path) -> None:
        document = json.loads(gpu_file.read_text())
        gpu_file.write_text(json.dumps({**document, "device": "mine", "wang_chu": None}))
        with refused("has no parameters for wang-chu"):
            read_gpu_parameters(gpu_file)
