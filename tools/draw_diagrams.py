"""Draw the pictures of the pages that explain: which tool, an answer, the parts, two methods.

    python tools/draw_diagrams.py docs/images

Writes which-tool.svg, answer.svg, parts.svg, bottleneck.svg and wu-2015.svg. The answer is what
mlscale prints of docs/logs; the curves are the laws of mlscale/predictors, of made kernels; the
method of Wu et al. is that of the notebook wu-2015, on the simulated kernels that ship.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import mlscale
from mlscale.arrays import Floats
from mlscale.data.datasets import path
from mlscale.predictors.runs_law import log_times
from mlscale.predictors.wu_clusters import scaling_from_regions, scaling_values

WIDTH = 600  # a telephone shows a picture at about 350 px
SIZE, LINE = 18, 24  # letters, and from one line to the next
INK, SOFT, EDGE, PAPER, TINT = "#24292f", "#57606a", "#c4cbd3", "#ffffff", "#f3f6f9"
BLUE, RED, GREEN, PURPLE = "#0072b2", "#c44e00", "#00795a", "#8a4f7d"
SANS, MONO, MONO_SIZE = "sans-serif", "monospace", 15

LOGS = Path(__file__).parent.parent / "docs" / "logs"
LOG_FILES = (LOGS / "training-1755.csv", LOGS / "training-1170.csv")
READ_MHZ, FIRST_MHZ, LIMIT = (1755, 1170), 1050, 5
CLOCKS, TIMES = (1020, 1830), (-12, 82)  # the ranges of the small plots [MHz, % more time]
USUAL = (-2, -1, 0, 1, 3)  # logit of the share that follows the clock, of made runs
LOG_P = 0.88  # as the shipped model `runs` learnt it
# Of a made kernel: how busy it kept the GPU, and the shares of its time.
BUSY = (("DRAM", 0.62, BLUE), ("pipes of the cores", 0.41, RED), ("issue slots", 0.35, RED))
LIMITS = (
    ("memory: the memory's", 0.45, BLUE),
    ("cores: the engine's", 0.3, RED),
    ("waiting: the engine's", 0.25, PURPLE),
)
PARTS, SHARP = (0.05, 0.8, 0.15), 5  # shares of waiting, memory and cores at the base, and p
KEYS = (  # what each line of that picture is
    ("time of the kernel: near the highest of the three", INK),
    ("memory: follows the memory clock alone", BLUE),
    ("compute units: as the engine clock falls, time rises", RED),
    ("waiting (latency): follows the engine clock, too", PURPLE),
)

WU_KERNELS = (  # that the picture of Wu et al. shows, and what each is called there
    ("matrixmultiplication.mmmKernel_local.256x256x32", "matrix product"),
    ("spmv.spmv_csr_scalar_kernel.d8192s5e-4", "sparse matrix"),
    ("matrixtranspose.matrixTranspose.w768", "transpose"),
)
NEW, AT = "bicg.bicgKernel2.2048x16", (16, 800, 700)  # the kernel held out, and its profile
STOPS = ((32, 800, 700), (32, 1000, 700), (32, 1000, 400))  # the walk from there
STEPS = (("CUs", "16 to 32"), ("engine MHz", "800 to 1000"), ("memory MHz", "700 to 400"))
MATRIX_KEY = "Steps of memory | of engine clock; blue: time falls"
WU_TITLES = (
    "Scaling matrices of measured kernels",
    "Clusters of kernels that scale alike",
    "A classifier chooses, from one profile",
    "Base time x the cluster's factors",
)
COUNTERS = ("VALUInsts", "SALUInsts", "MemUnitBusy", "CacheHit")

TOOLS = (  # what is asked, what to take, what it gives
    (
        ("Are you root, on", "an NVIDIA GPU?"),
        ("mlscale measure", "  --two-clocks"),
        ("time, power, energy of the run",),
    ),
    (
        ("Can anybody set a", "second clock: admin,", "Slurm, a power cap?"),
        ("two logs: nvidia-smi,", "amd-smi, rocm-smi"),
        ("the same; of each kernel: two", "traces (PyTorch, nsys, rocprofv3)"),
    ),
    (
        ("May you read counters", "on an NVIDIA GPU,", "Volta or later?"),
        ("ncu",),
        ("time of each kernel;", "energy too, with --power"),
    ),
    (
        ("May you read counters", "on an AMD GPU?"),
        ("rocprofv3, rocprof",),
        ("time of each kernel;", "not checked on AMD"),
    ),
    (
        ("Neither: one clock, and", "ERR_NVGPUCTRPERM"),
        ("one log, or one trace",),
        ("bounds of time, that hold", "in any case"),
    ),
)
EACH_KERNEL = (
    "Each kernel, not the whole run? Begin at the counters,",
    "and add a trace: it says how often each kernel runs.",
)
SHOWN_COMMAND = (
    "$ mlscale advise training-1755.csv \\",
    "    --also training-1170.csv --max-slowdown 5",
)
LABELS = (  # what an arrow shows, what its label says, its color
    (
        "7.6 % less energy",
        (
            "1  What to set, and what it does. Even at the slow end",
            "of its interval, +4.6 %, the run keeps 5 %.",
        ),
        GREEN,
    ),
    (
        "chance of exceeding 5 %",
        (
            "2  This clock saves more, and is only expected to keep",
            "5 %: four times in ten it does not.",
        ),
        RED,
    ),
    ("+0.4 to +4.6", ("3  Nine times in ten it lies in this range.",), BLUE),
    ("-7.6 %", ("4  Energy of the run, relative to now.",), GREEN),
    (
        "needs over 2 % less",
        (
            "5  How near the best clock this is, of those certain to",
            "keep 5 %. Of the energy at 4 it says nothing.",
        ),
        PURPLE,
    ),
)

Point = tuple[float, float]


def words(
    x: float,
    y: float,
    *lines: str,
    color: str = INK,
    size: float = SIZE,
    family: str = SANS,
    bold: bool = False,
    anchor: str = "start",
) -> str:
    """Lines of text, the first on the base line y."""
    look = f'font-family="{family}" font-size="{size:g}" fill="{color}"'
    look += f' text-anchor="{anchor}"'
    look += ' font-weight="bold"' * bold
    step = LINE * size / SIZE
    return "".join(
        f'<text x="{x:g}" y="{y + step * row:g}" xml:space="preserve" {look}>{escape(line)}</text>'
        for row, line in enumerate(lines)
    )


def printed(x: float, y: float, row: str) -> str:
    """A row of a terminal, as wide in every font."""
    wide = 0.602 * MONO_SIZE * len(row)
    return (
        f'<text x="{x:g}" y="{y:g}" xml:space="preserve" font-family="{MONO}" '
        f'font-size="{MONO_SIZE}" fill="{INK}" textLength="{wide:.1f}">{escape(row)}</text>'
        if row
        else ""
    )


def box(x: float, y: float, wide: float, high: float, fill: str = TINT, edge: str = EDGE) -> str:
    """A rounded rectangle."""
    place = f'x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="10"'
    return f'<rect {place} fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'


def line(
    points: Sequence[Point], color: str = SOFT, wide: float = 2, dash: str = "", head: bool = False
) -> str:
    """A line through points, with an arrow's head at its end."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = (
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{wide:g}"'
        f' stroke-dasharray="{dash}" stroke-linejoin="round"/>'
    )
    return drawn + (_head(points[-2], points[-1], color) if head else "")


def _head(before: Point, tip: Point, color: str) -> str:
    along = np.subtract(tip, before) / np.hypot(*np.subtract(tip, before))
    across = np.array([-along[1], along[0]])
    corners = [np.array(tip) - 11 * along + side * 5.5 * across for side in (-1, 1)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, *corners))
    return f'<polygon points="{path}" fill="{color}"/>'


def area(low: Sequence[Point], high: Sequence[Point], color: str) -> str:
    """What lies between two lines."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*low, *reversed(high)))
    return f'<polygon points="{path}" fill="{color}" fill-opacity="0.22"/>'


def dot(at: Point, color: str, radius: float = 6) -> str:
    """A point."""
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" fill="{color}"/>'


def card(high: float, title: str, *drawn: str) -> str:
    """The picture: a light card with its title for those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high:g}" '
        f'width="{WIDTH}" height="{high:g}" role="img"><title>{escape(title)}</title>'
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{high - 2:g}" rx="14" fill="{PAPER}" '
        f'stroke="{EDGE}" stroke-width="1.5"/>' + "\n".join(drawn) + "</svg>\n"
    )


@dataclass(frozen=True)
class Plot:
    """Axes with the lower left corner at x, y of the picture, and the ranges that they have."""

    x: float
    y: float
    wide: float
    high: float
    across: Point
    up: Point

    def at(self, xs: Any, ys: Any) -> list[Point]:
        """Where numbers are in the picture."""
        xs, ys = np.broadcast_arrays(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float))
        right = self.x + self.wide * (xs - self.across[0]) / (self.across[1] - self.across[0])
        down = self.y - self.high * (ys - self.up[0]) / (self.up[1] - self.up[0])
        return list(zip(right.ravel().tolist(), down.ravel().tolist(), strict=True))

    def axes(self, across: str, up: str) -> str:
        """Both axes, each with its name."""
        ends = [(self.x, self.y - self.high), (self.x, self.y), (self.x + self.wide, self.y)]
        look = {"color": SOFT, "size": 16}
        return (
            line(ends, SOFT, 1.5)
            + words(self.x + self.wide, self.y + 20, across, anchor="end", **look)
            + words(self.x + 6, self.y - self.high + 4, up, **look)
        )


def which_tool() -> str:
    """Questions down the left, tools on the right."""
    left, asks, right, high, gap = 18, 226, 290, 116, 30
    drawn = [words(left, 40, "Which tool, for your GPU and your rights?", bold=True, size=21)]
    for row, (question, tool, gives) in enumerate(TOOLS):
        y = 62 + row * (high + gap)
        middle = y + high / 2
        first = middle - LINE * (len(question) - 1) / 2 + 6
        center = left + asks / 2
        drawn += [box(left, y, asks, high), words(center, first, *question, anchor="middle")]
        drawn += [box(right, y, WIDTH - right - 18, high, PAPER, GREEN)]
        first = middle - LINE * (len(tool) + len(gives) - 1) / 2 + 6
        drawn += [words(right + 12, first, *tool, family=MONO, bold=True)]
        drawn += [words(right + 12, first + LINE * len(tool), *gives, color=SOFT, size=17)]
        drawn += [line([(left + asks, middle), (right, middle)], GREEN, 2.5, head=True)]
        if row < len(TOOLS) - 1:
            drawn += [words(left + asks + 6, middle - 9, "yes", color=GREEN, size=17)]
            drawn += [line([(center, y + high), (center, y + high + gap)], RED, 2.5, head=True)]
            drawn += [words(center + 12, y + high + 21, "no", color=RED, size=17)]
    y = 62 + len(TOOLS) * (high + gap) + 4
    return card(y + 50, "Which tool to take", *drawn, words(left, y, *EACH_KERNEL))


def printed_answer() -> list[str]:
    """What advise prints of the two logs of docs/logs, on a terminal of 63 columns."""
    command = ["advise", "training-1755.csv", "--also", "training-1170.csv", "--max-slowdown", "5"]
    process = subprocess.run(
        [sys.executable, "-m", "mlscale", *command],
        cwd=LOGS,
        env=dict(os.environ, COLUMNS="63", NO_COLOR="1"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [row.removeprefix("  ") for row in process.stdout.rstrip().splitlines()]


def answer() -> str:
    """The printed answer; below a row come the labels whose arrows show parts of it."""
    letter, step = 0.602 * MONO_SIZE, 26
    drawn = [words(20, 38, *SHOWN_COMMAND, family=MONO, size=MONO_SIZE, color=SOFT)]
    y, waiting = 38.0 + 3 * step, list(LABELS)
    for row in printed_answer():
        drawn.append(printed(20, y, row))
        bottom = y + 8
        y += step if row else step / 2
        while waiting and waiting[0][0] in row:
            shown, label, color = waiting.pop(0)
            start, end = (20 + letter * (row.index(shown) + n) for n in (0, len(shown)))
            x, is_right = (start + end) / 2, start > 0.65 * WIDTH
            drawn.append(line([(start, bottom), (end, bottom)], color, 2.5))
            drawn.append(line([(x, y + 14), (x, bottom + 6)], color, 2.5, head=True))
            anchor = "end" if is_right else "start"
            place = WIDTH - 20 if is_right else 20
            drawn.append(
                words(place, y + 32, *label, color=color, bold=True, size=17, anchor=anchor)
            )
            y += LINE * len(label) + 42
    if waiting:
        raise SystemExit(f"mlscale does not print {waiting[0][0]!r}")
    return card(y, "An answer, explained", *drawn)


def bars(x: float, y: float, rows: Sequence[tuple[str, float, str]], wide: float = 246) -> str:
    """A bar for each row: what it is, its share of 1, its color."""
    drawn = []
    for number, (name, share, color) in enumerate(rows):
        top = y + 44 * number
        drawn.append(words(x, top + 16, name, size=16))
        drawn.append(
            words(x + wide, top + 16, f"{share:.0%}".replace("%", " %"), size=16, anchor="end")
        )
        for part, fill in ((1.0, EDGE), (share, color)):
            place = f'x="{x:g}" y="{top + 23:g}" width="{wide * part:.1f}" height="12"'
            drawn.append(f'<rect {place} rx="4" fill="{fill}"/>')
    return "".join(drawn)


@dataclass(frozen=True)
class Run:
    """The run of docs/logs over the engine clock: percent more time, as predicted, and its ends."""

    clocks: Floats
    low: Floats
    time: Floats
    high: Floats
    answer: float
    expected: float


def the_run() -> Run:
    """What mlscale makes of the two logs, from FIRST_MHZ to the higher reading's clock."""
    fast, slow = LOG_FILES
    times = mlscale.predict(fast, also=slow).surfaces["time"]
    advice = mlscale.advise(fast, also=slow, max_slowdown=LIMIT)
    clocks = np.array(times.grid.engine_mhz)
    shown = (clocks >= FIRST_MHZ) & (clocks <= READ_MHZ[0])
    ends = (100 * one[0, 0, shown, 0] - 100 for one in (times.low, times.values, times.high))
    return Run(clocks[shown], *ends, advice.best.engine_mhz, advice.expected.engine_mhz)


def parts() -> str:
    """Readings or counters, a law for each, and one answer."""
    left, right, wide, run = 18, 308, 274, the_run()
    titles = [(36, "1  What was measured"), (314, "2  The law"), (614, "3  The answer")]
    drawn = [words(left, y, title, bold=True, size=20) for y, title in titles]
    drawn += [box(x, 50, wide, 202) + box(x, 328, wide, 224) for x in (left, right)]
    for x in (left + wide / 2, right + wide / 2):
        drawn += [line([(x, y), (x, y + 34)], wide=2.5, head=True) for y in (252, 552)]
    drawn += [
        words(left + 14, 76, "Two runs at two clocks", bold=True),
        words(right + 14, 76, "One profile, with counters", bold=True),
        words(left + 14, 354, "The curve of such runs that", "goes through both", bold=True),
        words(right + 14, 354, "What the time is spent on,", "and which clock sets it", bold=True),
        bars(right + 14, 96, BUSY),
        bars(right + 14, 396, LIMITS),
        curves(Plot(left + 18, 222, 240, 120, CLOCKS, TIMES), run, is_law=False),
        curves(Plot(left + 18, 522, 240, 120, CLOCKS, TIMES), run, is_law=True),
        box(left, 628, WIDTH - 2 * left, 300),
        chosen(Plot(left + 20, 890, 524, 212, (1535, 1765), (-2, 8.5)), run),
    ]
    return card(944, "From readings or counters, by a law, to the answer", *drawn)


def curves(plot: Plot, run: Run, is_law: bool) -> str:
    """The two readings; and with the law the run's curve among those of made runs."""
    drawn = [plot.axes("clock", "time")]
    if is_law:
        log_clock = np.log(run.clocks / READ_MHZ[0])
        for logit in USUAL:
            usual = 100 * np.expm1(log_times(log_clock, np.array([[logit], [LOG_P]]))[0])
            drawn.append(line(plot.at(run.clocks, usual), EDGE, 1.5))
        drawn.append(line(plot.at(run.clocks, run.time), BLUE, 3))
    read = np.isin(run.clocks, READ_MHZ)
    drawn += [dot(at, BLUE, 7) for at in plot.at(run.clocks[read], run.time[read])]
    return "".join(drawn)


def chosen(plot: Plot, run: Run) -> str:
    """The slowdown with its interval over the clock, the limit, and the two clocks that keep it."""
    shown = (run.clocks >= plot.across[0]) & (run.clocks <= READ_MHZ[0])
    clocks = run.clocks[shown]
    low, time, high = (plot.at(clocks, ends[shown]) for ends in (run.low, run.time, run.high))
    drawn = [
        area(low, high, BLUE),
        line(time, BLUE, 3),
        line(plot.at(plot.across, LIMIT), INK, 2, "7 5"),
        words(plot.x + plot.wide, plot.at(0, LIMIT)[0][1] - 8, "limit: 5 %", anchor="end"),
        plot.axes("engine clock", ""),
        words(plot.x - 6, plot.y - plot.high - 22, "Slowdown, with its 90 % interval", bold=True),
    ]
    named = (
        (run.answer, ("answer: the slow end", "keeps the limit"), GREEN, 30),
        (run.expected, ("expected: the line keeps it",), RED, 4),
    )
    for mhz, label, color, below in named:
        x, top = plot.at(mhz, 0)[0][0], plot.y - plot.high + below
        drawn.append(line([(x, plot.y), (x, top - 12)], color, 2.5))
        drawn.append(words(x + 8, top, *label, color=color, bold=True, size=17))
        drawn.append(words(x, plot.y + 20, f"{mhz:g}", color=color, bold=True, anchor="middle"))
    return "".join(drawn)


def bottleneck() -> str:
    """What three parts of a made kernel take over the engine clock, and the whole."""
    clock = np.linspace(0.35, 1.05, 80)
    rest, memory, core = PARTS
    plot = Plot(40, 350, 530, 280, (0.35, 1.05), (0.3, 2.3))
    taken = (memory + 0 * clock, core / clock**SHARP, rest / clock**SHARP)
    drawn = [words(18, 38, "The slowest part sets the time (a made kernel)", bold=True, size=20)]
    for part, (_, color) in zip(taken, KEYS[1:], strict=True):
        drawn.append(line(plot.at(clock, part ** (1 / SHARP)), color, 3, "8 5"))
    whole = plot.at(clock, sum(taken) ** (1 / SHARP))
    drawn += [line(whole, INK, 4), dot(plot.at(1, 1)[0], INK, 8)]
    drawn += [plot.axes("engine clock, relative to the profile's", "time")]
    [(x, y)] = plot.at(1, 1)
    drawn.append(words(x, y - 18, "the profile", anchor="middle"))
    for row, (key, color) in enumerate(KEYS):
        y = 404 + 30 * row
        drawn.append(
            line([(18, y - 6), (64, y - 6)], color, 4 if not row else 3, "8 5" * bool(row))
        )
        drawn.append(words(76, y, key, color=color, bold=not row))
    return card(404 + 30 * len(KEYS), "The bottleneck model", *drawn)


def matrix(x: float, y: float, values: Floats, cell: float = 22) -> str:
    """Scaling values as cells: white where a step changes nothing, blue where it helps."""
    drawn = []
    for (row, column), value in np.ndenumerate(values):
        place = f'x="{x + cell * column:g}" y="{y + cell * row:g}" width="{cell}" height="{cell}"'
        shade = min(1.0, max(0.0, (1.05 - value) / 0.4))
        look = f'fill="{BLUE}" fill-opacity="{shade:.2f}" stroke="{EDGE}"'
        drawn.append(f"<rect {place} {look}/>")
    return "".join(drawn)


def network(x: float, y: float, counters: Floats, outputs: Floats) -> str:
    """Counters as bars, the lines of two layers, and of the outputs the largest filled."""
    inputs, hidden, chosen = len(counters), len(outputs), int(outputs.argmax())
    drawn = []
    columns = [
        [(x + 290 + 90 * layer, y + 91 + 27 * (n - (count - 1) / 2)) for n in range(count)]
        for layer, count in enumerate((inputs, hidden, hidden))
    ]
    for one, other in pairwise(columns):
        drawn += [line([here, there], EDGE, 1) for here in one for there in other]
    for name, value, (right, middle) in zip(COUNTERS, counters, columns[0], strict=True):
        drawn.append(words(x + 14, middle + 6, name, size=16))
        place = f'x="{right - 130:g}" y="{middle - 6:g}" width="{112 * value:.1f}" height="12"'
        drawn.append(f'<rect {place} rx="4" fill="{BLUE}"/>')
    drawn += [dot(at, SOFT, 6) for layer in columns[:2] for at in layer]
    for n, at in enumerate(columns[2]):
        drawn.append(dot(at, GREEN if n == chosen else EDGE, 9))
        label, color = f"{n + 1}", GREEN if n == chosen else SOFT
        drawn.append(words(at[0] + 18, at[1] + 6, label, size=16, color=color, bold=n == chosen))
    return "".join(drawn)


def walked(x: float, y: float, base_us: float, factors: Sequence[float]) -> str:
    """The time at the base, the factor of each step, and their product."""
    shown = (f"{base_us:.1f} us", *(f"x {one:.3f}" for one in factors))
    product = f"= {base_us * np.prod(factors):.1f} us"
    below = (("profiled",), *STEPS, ("predicted",))
    drawn = []
    for n, (text, label) in enumerate(zip((*shown, product), below, strict=True)):
        place, color = x + 56 + 112 * n, GREEN if text == product else INK
        drawn.append(words(place, y + 36, text, bold=True, color=color, anchor="middle"))
        drawn.append(words(place, y + 64, *label, size=16, color=SOFT, anchor="middle"))
    return "".join(drawn)


def wu() -> str:
    """The method of Wu et al.: matrices, clusters, the network's choice, and the factors."""
    table, base = mlscale.read(path("simulated-gcn3.parquet")), mlscale.HardwareConfig(*AT)
    new = table.kernels.index(NEW)
    is_new = np.array([name == table.applications[new] for name in table.applications])
    known, kernel, grid = table.select(np.flatnonzero(~is_new)), table.select([new]), table.grid
    model = mlscale.Wu(clusters=6).fit(known, base)
    here = grid.index(base)
    cus, left = here[0], 18
    tops, highs = (50, 274, 444, 684), (166, 112, 182, 106)
    drawn = []
    for n, (top, high, title) in enumerate(zip(tops, highs, WU_TITLES, strict=True)):
        drawn.append(words(left, top - 12, f"{n + 1}  {title}", bold=True, size=19))
        drawn.append(box(left, top, WIDTH - 2 * left, high))
        if n < len(tops) - 1:
            middle = WIDTH - 36
            drawn.append(line([(middle, top + high), (middle, tops[n + 1])], wide=2.5, head=True))

    scaling = scaling_values(known.time_ms, here)
    for column, (name, label) in enumerate(WU_KERNELS):
        k, x = known.kernels.index(name), left + 16 + 186 * column
        drawn.append(matrix(x, tops[0] + 14, scaling.memory[k, cus]))
        drawn.append(matrix(x + 62, tops[0] + 14, scaling.engine[k, cus]))
        drawn.append(words(x, tops[0] + 128, label, size=17))

    drawn.append(words(left + 16, tops[0] + 152, MATRIX_KEY, size=16, color=SOFT))

    clusters = next(one for one in model.cluster_sets_ if one.region == cus)
    count, net = len(clusters.centroids), clusters.network
    shared = scaling_from_regions({cus: clusters.centroids}, grid.shape, count)
    for k in range(count):
        x = left + 14 + 91 * k
        drawn.append(matrix(x, tops[1] + 14, shared.memory[k, cus], 15))
        drawn.append(matrix(x + 34, tops[1] + 14, shared.engine[k, cus], 15))
        drawn.append(words(x + 38, tops[1] + 98, f"{k + 1}", size=17, anchor="middle"))

    point = model.scaling_.transform(kernel.profiles(base))[0][0]
    inner = 1 / (1 + np.exp(-(point @ net.hidden_weights + net.hidden_bias)))
    counters = point[[model.scaling_.names.index(name) for name in COUNTERS]]
    drawn.append(network(left, tops[2], counters, inner @ net.output_weights + net.output_bias))

    surface = model.predict(kernel.profiles(base)).values[0]
    stops = [surface[grid.index(mlscale.HardwareConfig(*stop))] for stop in (AT, *STOPS)]
    factors = [after / before for before, after in pairwise(stops)]
    drawn.append(walked(left, tops[3], 1000 * kernel.time_ms[0][here], factors))
    return card(tops[3] + highs[3] + 18, "The method of Wu et al.", *drawn)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, draw in {
        "which-tool": which_tool,
        "answer": answer,
        "parts": parts,
        "bottleneck": bottleneck,
        "wu-2015": wu,
    }.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")
