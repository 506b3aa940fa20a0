"""What each command refuses: what is typed, and words of the one line that says what to do.

Mistakes are those of people who met mlscale for the first time, and numbers that follow from the
files by hand. Of `refuse`: exit status 2, one line, and every file as it was. Where the line is to
be followed, hints.txt has a row.
"""

import csv
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Cli, Rows, at_base
from synthetic import bottleneck_kernels, frugal, llm_server, tidy
from synthetic import kernels as made
from synthetic.exports import long_page
from synthetic.monitor_logs import smi_dmon
from synthetic.monitor_readings import block
from synthetic.two_logs import log, of_gpu_1

import mlscale
from mlscale import ConfigGrid, read, train
from mlscale.data.datasets import path

AT = "--base engine=1980,memory=2619"
H100 = "NVIDIA H100 80GB HBM3"
SIMULATED = "simulated-gcn3.mlscale simulated-gcn3-profile.csv"

# What is refused by its words alone, before any file is looked for; the line names the help.
PREDICT, TRAIN = "predict m.mlscale p.csv", "train t.csv --base mid -o m"
USAGE = {
    "show": "a shipped model: h100-sms, kernels, runs, simulated-gcn3",
    "datasets list all": "unrecognized arguments: all",
    "advise p.csv -o a.xyz": "a.xyz: mlscale does not write .xyz; name a file *.csv, *.json or *.t",
    "study errors t.csv --quick": "there is no option --quick",
    "study errors t.csv --max-power 50": "there is no option --max-power",
    "study advice t.csv --quantity time": "there is no option --quantity",
    "predict": "required: FILE",
    "train t.csv --base mid": "required: -o/--output",
    "import dvfs f.csv": "required: -o/--output",
    "predict m.mlscale": "name the profile to predict too",
    f"{PREDICT} --model m.mlscale": "give --model or MODEL PROFILE, not both",
    f"{PREDICT} --format xml": "'xml'",
    f"{PREDICT} --format parquet": "not for a terminal; name a file with -o FILE",
    f"{PREDICT} --at cu=16,engine=fast": "'cu=16,engine=fast': 'fast' is not a n",
    "predict ncu.csv --fast": "there is no option --fast",
    "advise p.csv --max-time 0": "must be above 0 and finite, not '0'",
    "advise p.csv --max-power 0": "argument --max-power: must be above 0 and finite, not '0'",
    "advise p.csv --max-slowdown -1": "must be 0 or more and finite, not '-1'",
    "advise p.csv --power-cap 0": "argument --power-cap: must be above 0 and finite, not '0'",
    "devices list --format csv --json": "not allowed with argument",
    f"{TRAIN} --predictor wo": "no-scaling, engine-bound, core-bound",
    f"{TRAIN} --predictor extra-trees": "exists for studies only",
    f"{TRAIN} --features table2 --features-of ncu": "not allowed with argument",
    f"{TRAIN} --clusters 0": "must be a whole number, 1 or more, not '0'",
    f"{TRAIN} --seed one": "must be from 0 to",
    "train t.csv --base middle -o m": "'middle' is not a setting; use cu, engine",
    "train t.csv ./t.csv --base mid -o m": "t.csv: is given twice",
    "train t.csv p.csv --base mid -o m --predictor wu": "'wu' learns from one TABLE at a time",
    "study errors t.csv --protocol any": "leave-one-application-out",
    "study errors t.csv --incomplete skip": "'skip'",
    "study advice t.csv --runs 0": "argument --runs: must be a whole number, 1 or more, not '0'",
    "study advice t.csv --max-power -1": "--max-power: must be above 0 and finite, not '-1'",
    "import t.csv -o x.csv --base cu=0": "'0' in 'cu=0' must be positive and finite",
    "collect": "name a folder for the measurements with -o DIR",
    f"collect --dry-run --repeat {400 * '9'}": "must be a whole number",
}
COMMANDS = {
    "advice ncu.csv": "there is no command 'advice'; did you mean 'advise'? See 'mlscale --help'",
    "trian t.csv": "there is no command 'trian'; did you mean 'train'?",
    "zzz": "there is no command 'zzz'; see 'mlscale --help'",
    "ncu.csv": "ncu.csv is not a command; for advice on it: mlscale advise ncu.csv",
    "literature wang-chu": "'literature' ~source repository",
    "study compare t.csv": "'study compare' ~several predictors",
    "study error t.csv": "no command 'error'; did you mean 'errors'? See 'mlscale study --help'",
    "devices lst": "did you mean 'list'? See 'mlscale devices --help'",
    "devices list AD102": "no GPU of the table matches",  # a chip is no name
    "devices show H100": "no device 'H100'; did you mean h100-sxm5 or h100-pcie or h100-nvl?",
    "devices show cray-1": "'mlscale devices list' names those of the table",
    "devices show nothing.json": "nothing.json: cannot be read",
    "datasets show p10": "no data set 'p10'; available: wang-chu-gtx980, ~; is 'p100' meant?",
    "explain G3": "there is no code 'G3'; did you mean 'G03'?",
    "show t.csv": "is a table or log, not an mlscale model",
    "demo -o t.csv": "t.csv: is a file;",
}
SERVED = "advise bench-1980.json log-1980.csv --also bench-1320.json log-1320.csv"
ADVISE = {
    "advise run.csv --next-profile": "'--next-profile' ~0.6 of the clock",
    "advise ncu.csv --max-slowdwn 5": "there is no option --max-slowdwn; did you mean '--max-slowd",
    "advise ncu.csv --max_slowdown=5": "did you mean '--max-slowdown'? See 'mlscale advise --help'",
    "advise ncu.csv --minimise energy": "there is no option --minimise; did you mean '--minimize'?",
    "advise ncu.csv --minimize enrgy": "'enrgy' is not one of energy, edp, ed2p, time, power, cl",
    "advise ncu.csv --max-slowdown 5W": "--max-slowdown: '5W' has the unit 'W'; give %",
    "advise ncu.csv --power 500V": "--power '500V' has the unit 'V'; give W or kW, or a log's name",
    f"advise ncu.csv --power 5000 {AT}": "board power of 5000 W is impossible: 'h100-sxm5' has",
    "advise ncu.csv --require medium": "'medium' is not one of sure=low, sure=medium, sure=high",
    "advise ncu.csv --lever fan": "argument --lever: 'fan' is not one of clock, cap",
    "advise ncu.csv --max-power 500": "needs power: the profile has no power_w; give --power",
    "advise nuc.csv": "nuc.csv: cannot be read: No such file or directory; did you mean 'ncu.csv'",
    "advise unkown.csv": "No such file or directory; did you mean 'unknown.csv'?",
    "advise h100-by-hnd.csv": "did you mean 'h100-by-hand.csv'?",  # a shipped one
    "advise people.csv": "people.csv: unrecognised file; its columns 'name', 'age'",
    f"advise no-times.csv {AT}": "has no times for 2 kernels ('triad(",
    f"advise no-traffic.csv --model kernels {AT}": "the model needs the DRAM traffic: ncu's --sect",
    f"advise unknown.csv --device foo-9000 {AT}": "the GPU 'foo-9000' is unknown; ~map device=FILE",
    f"advise b300.csv {AT}": "132 CUs are fewer than the 148 of 'b300'",
    "advise semicolons.csv": "unrecognised file; no commas between its columns; give it as the",
    "advise run.ncu-rep": "run.ncu-rep: is not text; export the profiler's report as CSV, for",
    "advise training-step-trace.json.gz": "does not say engine_mhz; give --base engine=…",
    "advise folder": "folder: is a folder; name a file in it, or, if it holds Parquet files",
    f"advise ncu.csv --model simulated-gcn3 {AT}": "say nothing about 'h100-sxm5'; use a model tr",
    "advise kernels.mlscale fast.csv --also slow.csv": "'runs', which needs none: the",
    "advise details.csv -o out": "the GPU, engine_mhz, memory_mhz~ --device NAME --base engine=…",
    "advise details.csv": "; for a GPU that is not in the device table also cu=…, or a device file",
    "advise details.csv --device rtx6090": "say cu_count, engine_mhz, memory_mhz; give --base cu=…",
    "advise board --static-power 9": "power_w is board power, static power included",
    "advise board --max-power 30": "the whole run: no configuration keeps a power of at most 30 W",
    "advise dynamic --minimize edp": "the objective 'edp' needs the whole power: power_w is dynamic"
    " power; give the rest of the board's power as --static-power W",
    "advise dynamic --power-cap 80": "power_w is dynamic power; give the rest of the board",
    "advise powerless --minimize energy": "'energy' needs power: the profile has no power_w; give",
    "advise powerless --power-cap 90": "a power cap needs the whole power: the profile has no pow",
    "advise powerless --minimize time --static-power 5": "--static-power has no effect: the profi",
    "advise powerless --minimize time --max-power 50": " needs power: the profile has no power_w",
    "advise bare.mlscale board/profile.csv --minimize ed2p": " needs power: the model was trained",
    "advise board/made.mlscale dynamic/profile.csv": "the model's power_w is board power, the pr",
    "advise jetson --lever cap": "power limits of jetson-tx2 are not known",
    "advise h100 --lever cap --minimize clock": "'clock' is not for power caps",
    "advise board --lever cap": "the power limits of this GPU are not known; name the caps with ",
    "advise board -o advice.parquet": "advice on one run is not written as Parquet; name a file *",
    "advise board -o advice.html": "advice.html: 'mlscale report' writes a page of these files",
}
LOGS = {
    "advise fast.csv --power 500": "fast.csv: already has power_w; omit --power",
    "advise fast.csv slow.csv": "of 2 runs, at 1755 and 1170 MHz; ~with --also: fast.csv --al",
    "advise fast.csv --also slow.csv --time 3 --rate 5:4": "give --time or --rate, not both",
    "advise fast.csv --time 9990 --also slow.csv": "--time is only of the first",
    "advise fast.csv --also pair.csv": "pair.csv: ran on 2 GPUs, the base on 1; give runs on as",
    "advise pair.csv --also slow.csv": "slow.csv: ran on 1 GPU, the base on 2; give runs on as",
    "advise fast.csv --also gemm.json@engine=1170": "gemm.json: is a trace, which needs the",
    "advise table.csv --also slow.csv": "slow.csv: is a monitor's log, but the first file is no",
    "advise milliwatts.csv": "480000 W is more than a GPU draws: is it in mW",
    "advise kinds.csv": ", h100-pcie at cu=114",
    # Half way between the two, far below both, or in GHz: the base is neither.
    "advise fast.csv --also slow.csv --base engine=1460": "the nearest is at",
    "advise fast.csv --also slow.csv --base engine=500": "the nearest is at",
    "advise fast.csv --also slow.csv --base engine=1.755": "is 1.755GHz meant?",
    # An H100 has 345 to 1980 and 1593 or 2619 MHz; a third of these is the least.
    "advise fast.csv --also slow.csv --base memory=2.6": "h100-sxm5, ~ MHz; is 2.6GHz meant?",
    "advise fast.csv --also slow.csv@engine=1.17": "h100-sxm5, ~ MHz; is 1.17GHz meant?",
    "predict fast.csv --also slow.csv --at engine=1.2": "h100-sxm5, ~ MHz; is 1.2GHz meant?",
    "predict ncu.csv --at engine=2.1": "h100-sxm5, ~ MHz; is 2.1GHz meant?",
    "predict ncu.csv --at memory=2.6": "h100-sxm5, ~ MHz; is 2.6GHz meant?",
    "advise ncu.csv --base engine=1.98,memory=2619": "h100-sxm5, ~ MHz; is 1.98GHz meant?",
    "advise ncu.csv --also ncu.csv@engine=1.2": "h100-sxm5, ~ MHz; is 1.2GHz meant?",
    # Of one clock, whose share in what a cap leaves it cannot tell.
    "advise fast.csv --lever cap": "a power cap needs a second run: ~at about 1050 MHz too: --also",
    "advise fast.csv --power-cap 400": "a power cap needs a second run: ~at about 1050 MHz too",
    "report fast.csv --power-cap 400 -o p.html": "a power cap needs a second run: ~at about 1050",
}
NO_READINGS = "a power cap needs readings at two powers, and there is one"
CAPS = {
    "advise cap-300.csv --lever cap": f"row 2: {NO_READINGS}~cap of about 195 W too: --also FILE",
    "advise cap-300.csv --also cap-200.csv --lever cap --time 10": "--time does not work with runs",
    "advise two-runs.csv --lever cap": "has several runs in column 'kernel' (a, b), and no engine_",
    "advise cap-300.csv --also in-s.csv --lever cap": "takes 0.012 ms at 200 W~the same work takes",
    "advise cap-300.csv --also on-less.csv --lever cap": "takes 9 ms at 200 W~longer on less power",
    "advise in-mw.csv --lever cap": "in-mw.csv: row 2: 200000 W is impossible, 'rtx3090' has",
    "advise below-0.csv --also cap-200.csv --lever cap": "below-0.csv: row 2, column 'power_w'",
    "advise cap-300.csv --also unpowered.csv --lever cap": "unpowered.csv: there is no column 'pow",
    "advise cap-300.csv --also cap-200.csv": "no file has an engine clock; for runs under power ca"
    "~--lever cap~and that of a further file as FILE@engine=…",
    "advise cap-300.csv --power-cap 200": "no file has an engine clock; for runs under power caps",
    "advise unpowered-cap.csv --lever cap": "no column 'power_w'; add a column 'power_w', the mean"
    " power drawn, in W, not a limit",
    "advise unpowered-cap.csv --lever cap --map power_w=power_cap_w": "'power_cap_w' is ",
    "advise unpowered-cap.csv --lever cap --map power_w=time_ms": "power_w=time_ms: 'time_ms' is ",
    "advise pauses.csv --lever cap --device rtx3090": "30 % of the log is pauses",
    "advise all-cus.csv --also half-cus.csv --lever cap": "a power cap acts on the engine clock, an"
    "d all readings are at 1800 MHz; run",
    "advise limit-mw.csv --also slow.csv": "column 'power_cap_w': 600000 W is impossible",
    "advise no-gpu.csv --lever cap": "power_cap_w: 600000 W is impossible, no GPU has more",
    "report cap-300.csv --also cap-200.csv --lever cap --measured cap-200.csv -o p.html": "no know",
}
# Of a job whose power or time at a lower clock is above or below what it can be.
SAME_WORK = {
    "predict r1410-350.csv --also r840-400.csv": "r840-400.csv: at 840 MHz its kernels draw 1.14 ti"
    "mes as much power as at 1410 MHz, the same work draws more at the higher clock",
    "predict r1410-350.csv --also r1200-200.csv --also r840-300.csv": "r840-300.csv: at 840 MHz its"
    " kernels draw 1.50 times as much power as at 1200 MHz",
    "predict r1410-350.csv --also r1200-300.csv --also r840-250.csv": "r840-250.csv: at 840 MHz its"
    " kernels take 0.86 times as long as at 1200 MHz",
    "predict r1410-350.csv --also r840-300.csv --also r840-300.csv": "is given twice",
}
PREDICTED = {
    "predict none.csv": "none.csv: cannot be read: No such file or directory",
    f"{PREDICT} --also @engine=400": "names no file before '@'",
    "predict ncu.csv --at engine=1.2GHy": "has the unit 'GHy'; give MHz, GHz, kHz or Hz",
    "predict ncu.csv --at 1200": "argument --at: 1200 of what? Write engine=1200 or memory=1200",
    f"predict ncu.csv --at foo=1200 {AT}": "'foo' is not a setting; use cu, engine or memory, such",
    f"predict ncu.csv --at engine=5000 {AT}": "5000 is above what h100-sxm5 reaches, 1980",
    "predict fast.csv --model kernels": "omit the model or name 'runs', which needs none: the",
    f"{PREDICT} --at cu=4 --at engine=399,memory=700": "engine_mhz 399 is outside the grid (400, 8",
    f"{PREDICT} --at cu=5,engine=400,memory=700": "cu_count 5 is outside the grid (4); the model",
    f"{PREDICT} --at engine=0,memory=700": "'0' in 'engine=0,memory=700' must be positive and fin",
    f"{PREDICT} --at 400,700": "400 of what? Write engine=400 or memory=400",
    f"predict {SIMULATED} --at cu=48,engine=600,memory=700": "cu_count 48 is outside the grid (4, 8"
    ", 16, 32)~unless asked to (--extrapolate)",
    "predict wu.mlscale off-base.csv": "kernel 'second' has no row at the base cu=4,engine=800,mem",
    "predict wu.mlscale unlike.csv": "kernel 'first' has none of the features~such as 'loads'",
    "predict wu.mlscale blank.csv": "kernel 'first' has none of the features~such as 'loads'",
    "predict wu.mlscale other.csv": "other.csv: is of device 'other-gpu', the model of 'made-gpu'",
    "predict ncu.csv --model nosuch": "the shipped models are h100-sms, kernels, runs, simul",
    "predict nosuch.mlscale ncu.csv": "there is no such model file; the shipped models are",
    "predict ncu.csv --model nvidia-time": "no longer shipped; it is called 'kernels'",
    "predict ncu.csv --model a100-nvidia-smi": "a log at a second engine clock too",
    "predict ncu.csv --model models/none": "models/none: cannot be read: No such file",
    "predict p.csv other.csv": "p.csv: is a table, but several files must be exports of one run",
    "predict ncu.csv p.csv --model kernels": "p.csv: is a table, but several files must be",
    "predict details.csv -o out": "the GPU, engine_mhz, memory_mhz~ --device NAME --base engine=…,",
    "report details.csv -o out": "the GPU, engine_mhz, memory_mhz~ --device NAME --base engine=…,",
    "report nothing.csv -o folder": "is a directory",
    "report nothing.csv -o nowhere/p.html": "there is no folder",
    "report bad.csv -o p.csv": "bad.csv: ",
    "predict m.mlscale p.csv -o ./p.csv": "is also an input; name another",
}
IMPORTED = {
    "import ncu run.csv -o x.csv": "'import ncu' ~'import FILE …'",
    "import p.csv -o x.csv": "p.csv: is a tidy table; other commands read it directly",
    "import long.csv --base engine=1000,memory=500 -o x.csv": "does not say the GPU; give --device",
    "import long.csv -o x.csv": "does not say the GPU, engine_mhz, memory_mhz; give --device NAME",
    "import long.csv --device g -o x.csv": "does not say cu_count, engine_mhz, memory_mhz; give --",
    "import long.csv --device v100 --base cu=99,engine=1,memory=1 -o x.csv": "than the 80 of 'v10",
    "import long.csv --device g --base engine=fast -o x.csv": "'engine=fast': 'fast' is not a num",
    "import dmon.csv --device g --base cu=4 -o x.csv": "give --interval SECONDS (between two sampl",
}
# Their rates differ where counters do not, by the time alone: that is no profile.
APART = "'wu' needs at least two training kernels whose '{}' features differ"
TO_TRAIN = {
    "train ncu.csv --base mid -o m": "ncu.csv: is a file of Nsight Compute, raw page, not a table~m"
    "lscale import FILE … --append -o TABLE",
    "train t.csv --base mid -o t.csv": "is also an input; name another",
    "train t.csv --base engine=600,memory=700 -o m": "engine_mhz 600 is not on the grid; it has",
    "train t.csv --base engine=400 -o m": "'engine=400' gives no memory_mhz; one of 500, 700",
    f"{TRAIN} --clusters 3": "3 clusters cannot be made of 2 training kernels; give 1 to 2 with",
    "train alone.csv --base mid -o m": APART.format("raw"),
    f"{TRAIN} --leave-out app-first": APART.format("raw"),
    "train equal.csv --base mid -o m --features rates": APART.format("rates"),
    "train uncounted.csv --base mid -o m --predictor wu": "the counters give no 'raw' features",
    f"{TRAIN} --leave-out first": "there is no application 'first' to leave out; --leave-out takes",
    "train one.csv two.csv --base mid -o m --leave-out none": "there is no application 'none' to l",
    "train smi.txt --base mid -o m": "smi.txt: is a file of nvidia-smi --query-gpu",
    "train trace.txt --base mid -o m": "is a file of PyTorch's profiler, Chrome trace, not a table",
    "train gpu.txt --base mid -o m": "is JSON; a table is CSV or Parquet, and 'mlscale import' mak",
}
CHEAP = "--base mid --predictor nearest --features raw"
STUDIES = {
    "study errors smi.txt": "smi.txt: is a file of nvidia-smi --query-gpu",
    "study errors t.csv --base engine=600,memory=700": "engine_mhz 600 is not on the grid; it has",
    "study errors t.csv --base engine=400": "'engine=400' gives no memory_mhz; one of 500, 700",
    "study errors t.csv --base middle": "argument --base: 'middle' is not a setting; use",
    "study errors abc.csv --clusters 3 -o out": "3 clusters cannot be made of 2 training kernels;",
    "study errors alone.csv": "the protocol 'leave-one-application-out' needs 2 applications",
    "study errors bare.csv --quantity power": "no table has a column 'power_w'",
    "study errors bare.csv --features utilisation": "utilisation features need the peaks of 'made",
    "study errors bare.csv --features table2": "the counters give no 'table2' features; available",
    "study errors bare.csv --base cu=6,engine=500,memory=400": "'bare': cu_count 6 is not",
    "study errors bare.csv --protocol k-fold": "the protocol 'k-fold' needs 5 applications, not 4",
    "study errors bare.csv folder/../bare.csv": "two tables are named 'bare'; rename one",
    "study errors one.csv two.csv --pooled --unseen-gpu": "argument --unseen-gpu: not allowed with",
    "study errors one.csv two.csv --pooled --predictor wu": "'wu' learns from one table at a time",
    "study errors one.csv two.csv --unseen-gpu --quantity power": "on unseen GPUs only time is",
    "study errors one.csv two.csv --unseen-gpu --predictor wu": "'wu' cannot predict a GPU that it",
    "study errors one.csv --pooled": "training on several",
    "study errors one.csv --unseen-gpu": "no table is of another GPU",
    "study errors one.csv --train-on two.csv --pooled": "--pooled: not allowed with argument --tr",
    "study errors one.csv --train-on two.csv --protocol holdout": "a study that trains on other ta",
    "study errors one.csv --train-on none.csv": "none.csv: cannot be read: ",
    "study errors one.csv --train-on one.csv": "no kernel is left to train on: 'one' tests every a",
    "study errors one.csv --train-on one.csv --train-on one.csv": "two tables are named 'one'; ren",
    f"study advice made.csv {CHEAP} --runs 5 --protocol k-fold": "runs need the protocol",
    f"study advice made.csv {CHEAP} --minimize joy": "'joy' is not one of energy, edp",
    f"study advice made.csv {CHEAP} --static-power 5": "'made': power_w is board power, static pow",
    f"study advice made.csv {CHEAP} --max-time 1e-9": "no configuration of any kernel keeps the li",
    "study advice made.csv --base cu=8,engine=1,memory=700": "'made': engine_mhz 1 is not on the",
    f"study advice rest.parquet {CHEAP}": "'rest': power_w is dynamic power; give the rest as --st",
}
SERVERS = {
    "advise bench-1980.json log-1980.csv": "one clock does not show how latencies change with it",
    f"{SERVED} -o p.html": "p.html: 'mlscale report' writes a page of these files",
    SERVED.replace("advise", "report")
    + " -o p.html --compare a.csv": "--compare and --measured do",
    SERVED.removesuffix(" log-1320.csv"): "give each result its log",
    f"{SERVED} --slo ttft=500ms": "'ttft=500ms' is not a limit; write ttft=500ms@p90",
    f"{SERVED} --slo ttft=fast@p90": "'fast' is not a number",
    f"{SERVED} --slo 'itl<50'": "'itl<50' is not a limit; write ttft=500ms@p90",
    f"{SERVED} --slo 'tpot 30 ms'": "'tpot 30 ms' is not a limit; write ttft=500ms@p90",
    f"{SERVED} --slo tpot=-3ms@p90": "a limit is a positive number",
    f"{SERVED} --max-slowdown 5": "--max-slowdown does not work for a server; use --slo",
    f"{SERVED} --minimize time": "advice on a server is for most tokens per joule; omit --minimize",
    f"{SERVED} --pool decode --slo ttft=1s@p90": "a decode pool does not show",
    f"{SERVED} --base engine=1500": "no reading is at that clock; the nearest is bench-1320.json",
    SERVED.replace("bench-1320", "bench-1980"): "is a copy of",
    SERVED.replace("log-1980.csv", "bench-1320.json"): "is a benchmark's result, not the log of",
    "advise log-1980.csv --slo ttft=1s@p90": "needs a benchmark's result",
    "advise log-1980.csv --also log-1320.csv log-1320.csv": "unrecognized arguments",
}
MISTAKES = COMMANDS | ADVISE | LOGS | CAPS | SAME_WORK | PREDICTED | IMPORTED | TO_TRAIN | STUDIES
MISTAKES |= SERVERS


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that are named, in the current directory."""
    folder = tmp_path_factory.mktemp("refusals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "folder").mkdir()
        write_exports()
        write_tables()
        write_runs()
        write_models()
        yield folder


def write_exports() -> None:
    """The export of two kernels on an H100, written by hand, with a fact changed; others' pages."""
    text = path("h100-by-hand.csv").read_text("utf-8")
    rows = [row for row in csv.reader(text.splitlines()) if row]
    for name, lacks, gpu in (
        ("ncu", "", H100),
        ("no-times", "gpu__time_duration.sum", H100),
        ("no-traffic", "dram__bytes.sum", H100),
        ("unknown", "", "NVIDIA Foo 9000"),
        ("b300", "", "NVIDIA B300"),
    ):
        kept = [place for place, column in enumerate(rows[0]) if column != lacks]
        lines = [[row[place].replace(H100, gpu) for place in kept] for row in rows]
        with Path(f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    Path("semicolons.csv").write_text(text.replace('","', '";"'))
    Path("run.ncu-rep").write_bytes(bytes(range(64)))
    texts = {
        "details.csv": (
            '"ID","Process ID","Kernel Name","Block Size","Grid Size","Section Name",'
            '"Metric Name","Metric Unit","Metric Value"\n'
            '"0","1","k(int)","(32, 1, 1)","(9, 1, 1)","Speed Of Light","Duration","us","9.5"\n'
        ),
        "long.csv": long_page(),
        "dmon.csv": smi_dmon(block(2, 3, 1)),
        "people.csv": "name,age\nAda,36\n",
        "bad.csv": "kernel,time_ms\na,x\n",
        "smi.txt": "power.draw [W], utilization.gpu [%]\n3 W, 9 %\n",
        "trace.txt": '{"traceEvents": []}\n',
        "gpu.txt": '{"key": "mine"}\n',
    }  # fmt: skip
    for name, content in texts.items():
        Path(name).write_text(content)


def write_tables() -> None:
    """Tables of tidy.rows(), and of the laws in tests/synthetic/."""
    table = tidy.rows()
    profile = at_base(table)
    uncounted = [{k: v for k, v in row.items() if k != "loads"} for row in table]
    unlike = [{**row, "stores": 1, "loads": ""} for row in profile]
    tables: dict[str, Rows] = {
        "t": table,
        "p": profile,
        "alone": tidy.rows(["alone"]),
        "abc": tidy.rows("abc"),
        "uncounted": uncounted,
        "equal": [{**row, "inst_executed": 5.0} for row in uncounted],
        "off-base": [profile[0], {**profile[1], "engine_mhz": 400.0}],
        "unlike": [{k: v for k, v in row.items() if k != "loads"} for row in unlike],
        "blank": [{**row, "loads": "nan"} for row in unlike],
        "other": [{**row, "device": "other-gpu"} for row in profile],
    }
    for name, rows in tables.items():
        tidy.write_csv(Path(f"{name}.csv"), rows)
    grid = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))
    both = made.measurements(per_group=2, grid=grid)
    bare = replace(both, applications=tuple("ababcdcd"), power_samples=None)
    bare.write("bare.csv")
    one = bottleneck_kernels.measurements(4)
    one.write("one.csv")
    replace(one, device="gtx1080ti").write("two.csv")
    frugal.measurements().write("made.csv")
    frugal.measurements(power_kind="dynamic").write("rest.parquet")


def write_runs() -> None:
    """Logs, readings in a row of a table, and a server's results."""
    for name, mhz, tenths, watts, gpus in (
        ("fast", 1755, 100, 480, 1),
        ("slow", 1170, 120, 300, 1),
        ("pair", 1170, 120, 300, 2),
        ("milliwatts", 1755, 100, 480_000, 1),
        ("kinds", 1755, 100, 300, 2),
    ):
        log(Path(f"{name}.csv"), mhz, tenths, watts, gpus=gpus)
    of_gpu_1(Path("kinds.csv"), H100, "NVIDIA H100 PCIe")
    of_gpu_1(Path("kinds.csv"), "2619 MHz", "1593 MHz")
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 9, "args": {}}
    Path("gemm.json").write_text(json.dumps({"traceEvents": [event]}))
    capped, clocked = "time_ms,power_w,power_cap_w", "engine_mhz,memory_mhz,time_ms,power_w"
    run, cus = f"device,kernel,cu_count,{clocked}", "device,application,kernel,cu_count"
    rows = {
        "cap-300": (capped, "10,300,300"),
        "cap-200": (capped, "12.5,200,200"),
        "two-runs": ("kernel,time_ms,power_w", "a,10,300", "b,12,200"),
        "in-s": (f"device,{capped}", "rtx3090,0.012,200,200"),
        "on-less": (f"device,{capped}", "rtx3090,9,200,200"),
        "in-mw": ("device,time_ms,power_w", "rtx3090,12,200000", "rtx3090,10,300000"),
        "below-0": (capped, "10,-3,300"),
        "unpowered": ("device,time_ms", "rtx3090,12"),
        "unpowered-cap": ("device,time_ms,power_cap_w", "h100-sxm5,100,700"),
        "all-cus": (f"{cus},{clocked}", "rtx-a6000,j,j,84,1800,8001,100,280"),
        "half-cus": (f"{cus},{clocked}", "rtx-a6000,j,j,42,1800,8001,170,220"),
        "limit-mw": (f"{run},power_cap_w", "h100-sxm5,run,132,1755,2619,1000,500,600000"),
        "no-gpu": (f"device,{capped}", "no-such,1000,500,600000", "no-such,1300,350,350000"),
        "table": (run, "h100-sxm5,k,132,1755,2619,9,"),
        # Three of the ten samples between its idle ends draw 30 W amid 300.
        "pauses": (
            "timestamp, power.draw [W]",
            *(
                f"2026/03/02 14:00:{n:06.3f}, {watts}.00 W"
                for n, watts in enumerate((30, 300, 300, 30, 300, 30, 300, 30, *[300] * 3, 30))
            ),
        ),
    }
    for mhz, time_ms, watts in (
        *((1410, 100, 350), (840, 130, 400), (1200, 110, 200), (840, 140, 300)),
        *((1200, 117, 300), (840, 101, 250)),
    ):
        row = f"a100-sxm4-80gb,j,j,108,{mhz},1593,{time_ms},{watts}"
        rows[f"r{mhz}-{watts}"] = (f"{cus},{clocked}", row)
    for name, lines in rows.items():
        Path(f"{name}.csv").write_text("\n".join([*lines, ""]))
    for seed, mhz in enumerate((1980.0, 1320.0)):
        served = llm_server.serve(llm_server.Server(), mhz, 5.0, 400, None, seed)
        llm_server.write(served, mhz, Path())


def write_models() -> None:
    """Models of t.csv, and of frugal's kernels by what is known of their power."""
    for name, predictor in (("m", "mean-surface"), ("wu", "wu")):
        train(read("t.csv"), "mid", predictor).save(f"{name}.mlscale")
    bare = replace(frugal.measurements(), power_samples=None)
    train(bare, frugal.MID, "nearest").save("bare.mlscale")
    kinds: dict[str, dict[str, Any]] = {
        "board": {},
        "dynamic": {"power_kind": "dynamic"},
        "powerless": {"device": "h100-sxm5", "power": None},
        "h100": {"device": "h100-sxm5", "power": 5},
        "jetson": {"device": "jetson-tx2"},
    }
    for name, options in kinds.items():
        Path(name).mkdir()
        frugal.files(Path(name), **options)


def asked(typed: str) -> list[str]:
    """The words that are typed; a folder of frugal's stands for its model and profile."""
    words = shlex.split(typed)
    if len(words) > 1 and Path(words[1], "made.mlscale").exists():
        words[1:2] = [f"{words[1]}/made.mlscale", f"{words[1]}/profile.csv"]
    return words


@pytest.mark.parametrize(("typed", "said"), MISTAKES.items(), ids=MISTAKES)
def test_one_line_says_what_to_do(cli: Cli, inputs: Path, typed: str, said: str) -> None:
    """Here ~ stands for other words."""
    message = cli.refused(*asked(typed), folder=inputs)
    assert re.search(".*".join(map(re.escape, said.split("~"))), message), message


@pytest.mark.parametrize(("typed", "said"), USAGE.items(), ids=USAGE)
def test_bad_usage_names_the_help(cli: Cli, inputs: Path, typed: str, said: str) -> None:
    message = cli.refused(*typed.split(), folder=inputs)
    command = re.match(r"(?:datasets|devices|study) \w+|\w+", typed)
    assert command is not None
    assert said in message
    assert message.endswith(f"; see 'mlscale {command[0]} --help'")


def test_python_is_told_of_other_objectives(inputs: Path) -> None:
    with tidy.refused("there is no objective 'fastest'; one of energy, edp, ed2p, time, power, cl"):
        mlscale.advise("fast.csv", minimize="fastest")
