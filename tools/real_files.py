"""Print docs/real-files.md: what `mlscale advise` says of real files of public repositories.

    MLSCALE_DATA=FOLDER python tools/real_files.py > docs/real-files.md

FOLDER holds the files, which do not ship, below the paths in FILES.
"""

import io
import os
import re
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mlscale.cli.main import main

LIMIT = ("--max-slowdown", "5")
# Said once at the top of the page, as it is the same for every file.
COMMON = (
    "flag: .*: (no training data of|bandwidth reached at most|max-overlap)",
    "warning: (the shipped model|the lowest clock is sought)",
    "mlscale: warning: .*_mhz .*; if set to another, give --base",
)


@dataclass(frozen=True)
class RealFile:
    """A file below the folder of data, where it came from, and what the file does not say."""

    title: str
    file: str
    repository: str
    path: str
    options: tuple[str, ...]
    remark: str


LLM_PERF = "CodeGandee/llm-perf-opt"
KERNEL_3 = (
    "blob/8f081554f97fb20a0df0517198bd6e6369e3edf6/reports/20251107-dsocr/ncu-v2/"
    "kernel_0003_0a7671622339a06b4a022feebfe90426"
)
COMPUTE = "ROCm/rocprofiler-compute"
WORKLOADS = "blob/95b600ea582f168425bbf50f9707bcce1aa9d73c/tests/workloads"
FILES = (
    RealFile(
        "Nsight Compute, details page, CSV",
        "traces/ncu_details_csv/rtx5090_kernel0003_details.csv",
        LLM_PERF,
        f"{KERNEL_3}/ncu.details.csv",
        ("--device", "rtx5090"),
        "A bf16 matrix product on an RTX 5090. The details page does not name the GPU.",
    ),
    RealFile(
        "Nsight Compute, one section, CSV",
        "traces/ncu_speedoflight_csv/rtx5090_kernel0003_sol.csv",
        LLM_PERF,
        f"{KERNEL_3}/ncu.section_SpeedOfLight.csv",
        ("--device", "rtx5090"),
        "The same kernel by `--section SpeedOfLight` alone.",
    ),
    RealFile(
        "Nsight Compute, text",
        "traces/ncu_details_text/rtx4090_flashinfer_issue188.txt",
        "flashinfer-ai/flashinfer",
        "issues/188",
        ("--device", "rtx4090"),
        "Paged attention on an RTX 4090, as somebody pasted it into an issue (a part, typed over).",
    ),
    RealFile(
        "Nsight Compute of 2020, CSV saved by a spreadsheet",
        "profiler-exports/ncu_details/v100_2020_12col_resaved.csv",
        "Techercise/AMD-Instruction-Roofline-using-rocProf-Metrics",
        "blob/0ec59e0aca5f91e79ab99ce13ac84ac28c3e6c4a/LWFA_simulations/v100_lw_cc_output.csv",
        ("--device", "v100"),
        "Seven launches of a kernel of a plasma simulation on a V100.",
    ),
    RealFile(
        "Nsight Compute, raw page",
        "profiler-exports/ncu_raw/b200_torch_sdpa_flash.csv",
        "meinie0826/Roofline-Analysis",
        "blob/3fe410d8fa739523bcd63f443e3d0128fd1c4afc/decodebench/results/ncu/"
        "torch_sdpa_flash__gqa_bf16_b8_ctx32k_p64.ncu.csv",
        ("--base", "engine=1500"),
        "Flash attention on a B200: 475 columns, and none of them tells the DRAM's traffic. The "
        "engine clock is not in the file; 1500 MHz is made up, to come this far.",
    ),
    RealFile(
        "Nsight Systems",
        "traces/nsys_kern_sum_csv/rtx5090_dsocr_all.csv",
        LLM_PERF,
        "blob/8f081554f97fb20a0df0517198bd6e6369e3edf6/reports/20251107-dsocr/nsys/all-stage/"
        "nsys/summary_cuda_gpu_kern_sum.csv",
        (),
        "Times of all kernels of a language model on an RTX 5090.",
    ),
    RealFile(
        "rocprofv3",
        "profiler-exports/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv",
        "ROCm/rocm-systems",
        "blob/1b1610fc2b2ab32af71e6e04e4d4a6a4ae597992/projects/rocprofiler-compute/tests/"
        "workloads/vcopy/MI300X_A1_rocpd/pmc_perf.csv",
        ("--device", "mi300x", "--base", "engine=2100,memory=1300"),
        "A copy of vectors on an MI300X (the rows of counters that mlscale knows). AMD's files do "
        "not say the clocks; these are the highest of the data sheet.",
    ),
    RealFile(
        "rocprofv2",
        "profiler-exports/rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv",
        COMPUTE,
        f"{WORKLOADS}/no_roof/MI300A_A1/pmc_perf.csv",
        ("--device", "mi300a", "--base", "engine=2100,memory=1300"),
        "The same program on an MI300A, merged by ROCm's Compute Profiler into 2110 columns; the "
        "highest clocks again.",
    ),
    RealFile(
        "rocprof v1, renamed by omniperf",
        "profiler-exports/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv",
        COMPUTE,
        f"{WORKLOADS}/vcopy/MI200/pmc_perf.csv",
        ("--device", "mi210", "--base", "engine=1700,memory=1600"),
        "And on an MI200. The file does not say which of the three; MI210 is a guess.",
    ),
    RealFile(
        "DCGM",
        "traces/dcgmi_dmon/a100_bfs_1005.txt",
        "ghazanfarttu/Optimal-GPU-frequency-using-DNN-based-models",
        "blob/19c292a7cf648da0b2f946db623d3ba40a205f92/AE/datasets/SPEC_A100/dcgm_results/"
        "GA100-bfs-1005-0",
        ("--device", "a100-sxm4-40gb", "--base", "memory=1215", "--interval", "0.1"),
        "Breadth-first search on an A100 at 1005 MHz. A log of dcgmi has no times: the interval, "
        "the board and its memory clock are guesses here.",
    ),
    RealFile(
        "nvidia-smi, one log of an A100",
        "traces/nvidia_smi_query/a100_falcon7b.csv",
        "grantwilkins/energy-inference",
        "blob/5c2cfa4a9bdbccc6a037ece3d2eb64322db115ea/stats/e2dc-raw-stats/falcon-7b/2024-03-29/"
        "11-16-49/nvidia-smi.csv",
        ("--device", "a100-sxm4-40gb", "--base", "engine=1410,memory=1215"),
        "A language model answers on an A100; the middle of the log is left out in the "
        "collection. It has no clocks and does not name the GPU: the board and its highest clocks "
        "are guesses here.",
    ),
    RealFile(
        "nvidia-smi dmon",
        "traces/nvidia_smi_dmon/h100_load.txt",
        "utkuozdemir/nvidia_gpu_exporter",
        "blob/e656cd81a180e7e0e7862b53c9acd4c2fb0f590b/internal/captures/"
        "linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt",
        ("--device", "h100-sxm5", "--interval", "1"),
        "Five samples of an H100 under load.",
    ),
)
HEAD = """\
# Real files, and what came out

The files below were found in public repositories. We made none of them, and they do not ship with
mlscale. Each section says what a file is, gives the command, and shows what it printed: the verdict
and what was missing or outside the training range, or the one line that says what the file lacks.
Nobody measured whether the advice is right on these GPUs. [Measured errors](measured-errors.md)
says how far off predictions are where there are measurements.

Some things are the same for every answer and are left out below:

- the table of times;
- the lines that say that the shipped model `nvidia-time.mlscale` was chosen, has no training data
  of the GPU, and takes a usual 84 % of the peak for the bandwidth that is reached;
- the line that says that it seeks the lowest engine clock, because the file has no power;
- the line that says that clocks were taken from the file, or the memory's highest.
"""
EVERY = """
## Every trace, log and export of the collection

This is what `mlscale import FILE` made of each file below `traces/` of the collection (for
files of kernel_tuner and T4 files, `import kernel-tuner FILE`). Where a file does not say GPU or
clocks, they were made up: (1) engine and memory at 1000 MHz; (2) a GPU's name; (3) and 10 CUs;
(4) and 1000 MHz; (5) an H100 at its highest clocks, sampled every second.

| file | from | what came out |
|---|---|---|
"""
# What the files may not say, the least that is made up first.
MADE_UP = (
    (),
    ("--base", "engine=1000,memory=1000"),
    ("--device", "made-gpu"),
    ("--device", "made-gpu", "--base", "cu=10"),
    ("--device", "made-gpu", "--base", "cu=10,engine=1000,memory=1000"),
    ("--device", "h100-sxm5", "--base", "engine=1980,memory=2619", "--interval", "1"),
)
KERNEL_TUNERS = ("kernel_tuner_cache", "t4_results")
LONGEST_CELL = 200
LACKS = "does not say|--base says|leave --interval away"
TAIL = """
This page is what `tools/real_files.py` prints; `MLSCALE_DATA` names the folder with the files.
"""


def page(folder: Path) -> str:
    """The whole page. folder: holds the files of FILES."""
    return HEAD + "".join(_section(real, folder) for real in FILES) + _every(folder) + TAIL


def _section(real: RealFile, folder: Path) -> str:
    path = folder / real.file
    words = ["advise", path.name, *real.options, *LIMIT]
    kind, *_ = real.path.split("/")
    name = real.path if kind == "issues" else real.path.rpartition("/")[2]
    link = f"[{real.repository}, {name}](https://github.com/{real.repository}/{real.path})"
    _, printed, complaints = _said(words, path.parent)
    lines = printed[:1] + [line for line in printed if re.match("flag|warning", line)] + complaints
    told = [line for line in lines if not any(re.match(common, line) for common in COMMON)]
    return (
        f"\n## {real.title}\n\n{real.remark}\n({link})\n\n"
        f"```\n$ mlscale {' '.join(words)}\n" + "\n".join(told) + "\n```\n"
    )


def _said(words: list[str], folder: Path) -> tuple[int, list[str], list[str]]:
    """The status of a command in a folder, and the lines that it prints and complains of."""
    with (
        chdir(folder),
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as complaints,
    ):
        status = main(words)
    return status, printed.getvalue().splitlines(), complaints.getvalue().splitlines()


def _every(folder: Path) -> str:
    """A table of all files of the collection's traces, with the repository that its list names."""
    traces = folder / "traces"
    text = (traces / "README.md").read_text(encoding="utf-8")
    repositories = dict(re.findall(r"^\| (\S+/\S+) \| ([\w.-]+/\S+) ", text, re.MULTILINE))
    rows = []
    for path in sorted(traces.glob("*/*")):
        name = str(path.relative_to(traces))
        rows.append(f"| {name} | {repositories.get(name, '')} | {_outcome(path)} |\n")
    return EVERY + "".join(rows)


def _outcome(path: Path) -> str:
    """The first line that importing says, with the number of what was made up for it."""
    said, kind = "", ["kernel-tuner"] if path.parent.name in KERNEL_TUNERS else []
    for number, options in enumerate(MADE_UP):
        with TemporaryDirectory() as folder:
            output = Path(folder) / "table.csv"
            words = ["import", *kind, path.name, *options, "-o", str(output)]
            status, printed, complaints = _said(words, path.parent)
        if status == 0:
            text = printed[0].removeprefix(f"{output}: ")
            text = text.partition("; Table II")[0]
            return f"({number}) {_cell(text)}" if number else _cell(text)
        error = complaints[-1].removeprefix("mlscale: error: ")
        said = said or error
        if not re.search(LACKS, error):
            return f"refused: {_cell(error.removeprefix(f'{path.name}: '))}"
    return f"refused: {_cell(said.removeprefix(f'{path.name}: '))}"


def _cell(text: str) -> str:
    """A text as a cell of a table in Markdown."""
    shown = text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
    return f"`{shown.replace('|', '/').replace('`', '')}`"


if __name__ == "__main__":
    sys.stdout.write(page(Path(os.environ["MLSCALE_DATA"])))
