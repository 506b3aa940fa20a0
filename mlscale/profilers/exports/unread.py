"""Files near to those that are read, known by a line, and what makes one that is read of them."""

import re
from collections.abc import Sequence

TITLE_LINES = 5  # in which such a line stands
_STAMP, _UUID = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", r"GPU-[0-9a-f]{8}-[-0-9a-f]{27}"
_BUS, _WITH_UNIT = r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d", r"[\d.]+ (W|MHz|%|MiB)"
_LONGEST = 1 << 12
_WITHOUT_NAMES = re.compile(
    rf"(.*, )?(({_STAMP}|{_UUID}|{_BUS}), |{_WITH_UNIT}, (.*, )?{_WITH_UNIT}(, |\s*$))"
)
_IN_SEMICOLONS = re.compile(r"(?=.*(power\.draw|utilization\.gpu|clocks\.))[a-z_.]+[^,]*;[^,]*$")
_OF_PROCESSES = re.compile(r"\s*#.*\bgpu,?\s+pid\b")
_OF_A_MOMENT = re.compile(r"=+NVSMI LOG=+|\|\s*NVIDIA-SMI \d|\s*<!DOCTYPE nvidia_smi_log")
_CODECARBON = re.compile(r"timestamp,project_name,run_id,")
_RADEONTOP = re.compile(r"\d+\.\d+: (bus \w+, )?gpu [\d.]+%, ")
_ROCPD_SUMMARY = re.compile(r"\s*[A-Z_]+_SUMMARY:\s*$")
_V3_SUMMARY = re.compile(r"\s*\|\s*NAME\s*\|\s*DOMAIN\s*\|\s*CALLS\s*\|")
_KEY_AVERAGES = re.compile(r"\s+Name\s+Self CPU.*# of Calls\s*$")
_AMD = re.compile(
    r"=+ ROCm System Management|\s*GPU\[\d+\]|\s*GPU: \d+\s*$|\s*(TIMESTAMP +)?GPU +.*(POWER|GFX)|"
    r'\s*\{?\s*"(card\d+|gpu_data)"'
)
_TEGRASTATS = re.compile(r".*\bRAM \d+/\d+MB\b")
_NVPROF = re.compile(
    r"==\d+== (NVPROF|Profiling|Metric|Event)|\"(Type|Time\(%\)|Start|Device)\",\""
)
_CODEXL = re.compile(r"# ProfileFileVersion=|Method\s*[,;]\s*ExecutionOrder")
_EXPORTER = re.compile(r'# (HELP|TYPE) \w+ |\w+\{\w+="')
_JSON = re.compile(r"\s*[{[]")
_OWN_LOG = re.compile(
    r"(?=.*\b_?(time|timestamp|datetime|date|elapsed)(?!\w))"
    r"(?=.*(power|watt|util|gpu[ _]?us|gpu ?\d)).*[,;]",
    re.IGNORECASE,
)
_MENDS = {
    _WITHOUT_NAMES: "that is a row of nvidia-smi --query-gpu without the names: record without "
    "'noheader', or put above it what nvidia-smi was asked for, such as: timestamp, index, name, "
    "power.draw, clocks.current.sm",
    _IN_SEMICOLONS: "it has semicolons, as a spreadsheet saves it; use the file as nvidia-smi "
    "wrote it",
    _OF_PROCESSES: "that is of nvidia-smi pmon, which tells of processes, and neither clocks nor "
    "the power of the board; record nvidia-smi dmon -s puc -o DT",
    _OF_A_MOMENT: "that is what nvidia-smi tells of a moment; record nvidia-smi --query-gpu="
    "timestamp,index,name,power.draw,clocks.sm,clocks.mem,utilization.gpu --format=csv -lms 100",
    _CODECARBON: "codecarbon sums a run up, and tells no clocks: log the run "
    "(docs/sampled-logs.md)",
    _RADEONTOP: "radeontop tells no power: log the run with rocm-smi or amd-smi "
    "(docs/sampled-logs.md)",
    _ROCPD_SUMMARY: "that is what 'rocpd summary' prints; give the database that it is of "
    "(…_results.db)",
    _V3_SUMMARY: "that is rocprofv3's summary; give …_kernel_trace.csv of rocprofv3 --kernel-trace "
    "--output-format csv",
    _KEY_AVERAGES: "that is what key_averages() prints; export the trace: "
    'prof.export_chrome_trace("trace.json")',
    _AMD: "of rocm-smi and amd-smi the CSV is read: log the run with --csv",
    _TEGRASTATS: "tegrastats is not read; give a CSV with nvidia-smi's names of columns "
    "(docs/sampled-logs.md)",
    _NVPROF: "nvprof's exports are not read; profile with ncu --csv, or give a tidy table",
    _CODEXL: "CodeXL's files are not read; AMD's rocprofv3 (--output-format csv) and rocpd are",
    _EXPORTER: "that is a scrape of an exporter; ask Prometheus for what it kept of dcgm-exporter, "
    "as JSON (query_range), or log the run with nvidia-smi or amd-smi --csv (docs/sampled-logs.md)",
    _JSON: "of JSON, PyTorch's traces and Prometheus' answers are read (of monitors the CSV), and "
    "by 'mlscale import kernel-tuner' caches of kernel_tuner and T4 files",
    _OWN_LOG: "a log of your own is read once its columns have nvidia-smi's names: timestamp "
    "(seconds, or a date and time), index, name, power.draw (W), clocks.current.sm, "
    "clocks.current.memory (MHz), utilization.gpu, utilization.memory (%); a row for each GPU",
}
NCU_SUMMARY = (
    "Nsight Compute's summary of kernels is not read; export the launches: ncu --import REPORT "
    "--page raw --csv > run.csv"
)
_STATS = (
    "is rocprof's statistics, not a row for each launch; give …_kernel_trace.csv of rocprofv3 "
    "--kernel-trace --output-format csv, or results.csv of rocprof --timestamp on"
)
ROCPROFV3_MEND = (
    "profile again with --output-format csv, or, from ROCm 7 on, with rocpd, which is a database"
)
_V3_MEND = "not of kernels; give …_kernel_trace.csv, which --kernel-trace writes beside it"
_REFUSED = (  # columns that only such a table has
    ({"Kernel Name", "Invocations", "Metric Name", "Average"}, NCU_SUMMARY),
    ({"Name", "Calls", "TotalDurationNs", "AverageNs"}, _STATS),
    (
        {"Domain", "Function", "Correlation_Id"},
        f"is rocprofv3's trace of the host's calls, {_V3_MEND}",
    ),
    ({"Kind", "Direction", "Correlation_Id"}, f"is rocprofv3's trace of copies, {_V3_MEND}"),
)


def mend_of(line: str) -> str | None:
    """What to do with a file that has this line among its first; None where nothing is known."""
    return next((mend for form, mend in _MENDS.items() if form.match(line[:_LONGEST])), None)


def refusal_of(names: Sequence[str]) -> str | None:
    """Why a table with these columns does not serve; None where nothing is known against it."""
    return next((why for columns, why in _REFUSED if columns.issubset(names)), None)
