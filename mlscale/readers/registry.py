"""The registry of readers: by what each kind of file is known, and the module that reads it.

To add a reader, put a module into this folder and a line into READERS. The module has one function,

    def read(sheet: Sheet, facts: Facts, needed: Collection[str]) -> Iterator[Launches]

which gives the launches of an open file block by block, notes in `facts` what it says besides, and
takes those counters that the tool's formulas in mapping.json need; `nsys` is a short one. A module
is imported when the first of its files is met. That of the monitors, `monitor`, gives samples, that
of the benchmarks of LLM servers, `serving`, results.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mlscale.parameters import command

_NO_REPORT = (
    "does not list kernels, or is not CSV; give nsys stats --report cuda_gpu_trace --format csv"
)
_NO_LAUNCHES = "is not read; export the launches: ncu --import REPORT --page raw --csv > run.csv"
_SUMS = (
    "has totals of whole runs, not samples; give duration and energy as a table with a row for "
    "each run: device, engine_mhz, time_ms, energy_j"
)
_ADVISE = command("advise LOG", also="LOG", rate="A:B")
_RATES = f"give logs of the runs at two clocks with its tokens per second: {_ADVISE}"
_SMI = r"(power\.draw|clocks\.|utilization\.)[\w.]*"  # names of nvidia-smi --query-gpu


@dataclass(frozen=True)
class Kind:
    """A kind of file, and by what it is known; one of `columns`, `line`, `json`, `tables` is given.

    Attributes:
        module: that reads it; '' for a file that is not read.
        tool: what writes it, as 'ncu'.
        title: what a user is shown.
        columns: names that the header of its CSV has, all of them, in any order; 'A|B' is either.
        lacks: names of which its header has none.
        line: a pattern that the line matches at which it begins.
        json: a name that its JSON has near the beginning.
        tables: what the names of its SQLite tables begin with.
        instead: of a file that is not read, what to give in its place.
    """

    module: str
    tool: str
    title: str
    columns: str = ""
    lacks: str = ""
    line: str = ""
    json: str = ""
    tables: str = ""
    instead: str = ""

    @property
    def is_benchmark(self) -> bool:
        """Whether a benchmark of a server wrote it."""
        return self.module == "serving"

    @property
    def is_log(self) -> bool:
        """Whether a monitor wrote it."""
        return self.module == "monitor"

    def begins_at(self, line: str, names: Sequence[str]) -> bool:
        """Whether a text of this kind begins at a line, which as CSV has these cells."""
        if self.line:
            return bool(re.match(self.line, line))
        if not self.columns or not set(filter(None, names)).isdisjoint(self.lacks.split(", ")):
            return False
        return all(
            any(name in names for name in column.split("|")) for column in self.columns.split(", ")
        )

    def reader(self) -> Callable[..., Any]:
        """The `read` of its module."""
        read: Callable[..., Any] = import_module(f"mlscale.readers.{self.module}").read
        return read


KIND_OF_TABLES = Kind("monitor", "log", "a script or monitor")  # known by what its titles say
# fmt: off
READERS = (
    Kind("ncu", "ncu", "Nsight Compute, details page", "ID, Process ID, Kernel Name, Metric Name"),
    Kind("ncu", "ncu", "Nsight Compute, raw page", "ID, Process ID, Kernel Name"),
    Kind("ncu", "ncu", "Nsight Compute, text", line=r"\s*\[\d+\] \S.*@\S+\s*$|"
         r"\s*\S.* \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), (Context|Device) \d"),
    Kind("nsys", "nsys", "Nsight Systems, cuda_gpu_trace", "Name, GrdX, GrdY, GrdZ, BlkX"),
    Kind("nsys", "nsys", "Nsight Systems, cuda_gpu_kern_sum", "Instances, Name",
         lacks="Category, Style, Source, PID"),
    Kind("nsys", "nsys", "Nsight Systems, SQLite", tables="CUPTI_ACTIVITY_KIND_"),
    Kind("rocprof", "rocprofv3", "rocprofv3 counter collection",
         "Kernel_Name, Dispatch_Id|Dispatch_ID, Counter_Name, Counter_Value"),
    Kind("rocprof", "rocprofv3", "rocprofv3 kernel trace",
         "Kind, Kernel_Name, Dispatch_Id, Start_Timestamp, End_Timestamp"),
    Kind("rocprof", "rocprof", "rocprof v1 or v2",
         "KernelName|Kernel_Name, Index|Dispatch_ID, grd|Grid_Size, wgr|Workgroup_Size"),
    Kind("rocprof", "rocprof", "rocprof's statistics of kernels",
         "Name, Calls, TotalDurationNs, AverageNs"),
    Kind("rocprof", "rocprof", "rocprof-compute's sysinfo.csv beside the counters",
         "gpu_arch, cu_per_gpu", lacks="Kernel_Name"),
    Kind("rocprof", "rocprofv3", "rocprofv3's agent_info.csv beside the counters",
         "Agent_Type, Cu_Count, Name, Product_Name, Node_Id"),
    Kind("rocprof", "rocprofv3", "rocprofv3, SQLite (rocpd)", tables="rocpd_"),
    Kind("torch_trace", "torch", "PyTorch's profiler, Chrome trace", json="traceEvents"),
    Kind("monitor", "nvidia-smi", "nvidia-smi --query-gpu",
         line=rf'(.*,)?\s*"?{_SMI} \[(W|MHz|%)\]"?\s*(,|$)'),
    Kind("monitor", "nvidia-smi", "a script of your own (nvidia-smi's names)",
         line=rf'(.*,)?\s*"?{_SMI}"?\s*(,|$)'),
    Kind("monitor", "nvidia-smi", "nvidia-smi dmon",
         line=r"\s*#\s*(Date,?\s+)?(Time,?\s+)?gpu[,\s](?!.*\bpid\b)"),
    Kind("monitor", "dcgm", "dcgmi dmon", line=r"\s*#\s*Entity\s"),
    Kind("monitor", "dcgm", "Prometheus", json="resultType"),
    Kind("monitor", "gpustat", "gpustat", json="query_time"),
    Kind("monitor", "wandb", "W&B's system metrics", json="_timestamp"),
    Kind("monitor", "rocm-smi", "rocm-smi --csv",
         "device, sclk clock speed:|Average Graphics Package Power (W)|GPU use (%)"),
    Kind("monitor", "amd-smi", "amd-smi metric --csv", "gpu, socket_power"),
    Kind("monitor", "amd-smi", "amd-smi monitor --csv", "gpu, power_usage|gfx_clk"),
    Kind("serving", "aiperf", "AIPerf or GenAI-Perf", json="output_token_throughput"),
    Kind("serving", "trtllm-bench", "trtllm-bench", json="streaming_metrics"),
    Kind("serving", "sglang", "SGLang's bench_serving", json="random_range_ratio"),
    Kind("serving", "vllm", "vLLM's bench serve", json="num_prompts"),
    Kind("", "ncu", "Nsight Compute's summary of kernels",
         "Kernel Name, Invocations, Metric Name, Average", instead=_NO_LAUNCHES),
    Kind("", "nsys", "this report of Nsight Systems",
         line=r"\W*Time ?\(%\)\W+Total Time", instead=_NO_REPORT),
    Kind("", "vllm", "the printed summary of a benchmark",
         line=r"=+ Serving Benchmark Result =+",
         instead=f"is not read; give its JSON (--save-result), or {_RATES}"),
    Kind("", "llama-bench", "the table of llama-bench",
         line=r'\|\s*model\s*\|.*\|\s*t/s\s*\||.*\bavg_ts"?,"?stddev_ts\b',
         instead=f"has no power; {_RATES}"),
    Kind("", "smi", "the box of nvidia-smi, rocm-smi, amd-smi or gpustat",
         line=r"[|+=\s]*(NVIDIA-SMI \d|AMD-SMI \d|ROCm System Management Interface|"
         r"\[\d+\].* \| +\d+\W+C\b)",
         instead=f"shows one moment; '{command('import', 'help')}' lists commands that log a run"),
    Kind("", "codecarbon", "CodeCarbon's file", "emissions_rate, energy_consumed", instead=_SUMS),
    Kind("", "slurm", "sacct's list", line=r"\s*JobID\b.*\bConsumedEnergy", instead=_SUMS),
)
# fmt: on
