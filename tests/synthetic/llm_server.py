"""A server of language models, simulated event by event: its benchmark's result and its log.

Continuous batching as vLLM's scheduler has it: in each step all running requests get a token, then
waiting ones are prefilled in chunks, within a budget of tokens. A step takes a p-norm of compute,
which follows the clock, and memory, which hardly does, and the host's time. Power is static, of the
clock, of compute and of memory, the middle two by the square of the voltage. All numbers are made.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats

HEADER = (
    "timestamp, index, name, power.draw.instant [W], clocks.current.sm [MHz], "
    "clocks.current.memory [MHz], utilization.gpu [%]\n"
)
IDLE_W = 115.0


@dataclass(frozen=True)
class Server:
    """Times of a step at the highest clock [s], and powers [W]."""

    highest_mhz: float = 1980.0
    token_s: float = 45e-6  # compute for a token
    weights_s: float = 9e-3  # reading the weights in a step
    context_s: float = 25e-9  # reading a token of context
    host_s: float = 1e-3
    bend: float = 1.4
    floor: float = 0.55  # share of the highest clock below which the voltage stays
    budget: int = 2048  # tokens of a step
    slots: int = 256

    def step(
        self, clock: float, running: int, context: float, prefilled: float
    ) -> tuple[float, ...]:
        """Seconds of a step, of compute and of memory in it; clock: over the highest."""
        compute = (running + prefilled) * self.token_s
        memory = self.weights_s + context * self.context_s
        steps = ((compute / clock) ** self.bend + memory**self.bend) ** (1 / self.bend)
        return steps + self.host_s, compute, memory

    def watts(self, clock: float, compute: float, memory: float) -> float:
        """Mean power while a share of the time is compute (at the highest clock), or memory."""
        voltage = 0.75 + 0.25 * max(0.0, (clock - self.floor) / (1 - self.floor)) ** 1.2
        return 110 + voltage**2 * (120 * clock + 330 * compute) + 190 * memory


@dataclass(frozen=True, eq=False)
class Run:
    """R requests that were served: start, time to first token and gaps [s], lengths, and power."""

    starts: Floats
    ttfts: Floats
    gaps: list[list[float]]
    inputs: Floats
    power_w: float
    duration_s: float
    rate: float
    clients: int | None


def schedule(
    server: Server, running: list[int], left: Floats
) -> tuple[list[int], dict[int, float]]:
    """Which requests get a token in a step, and how many tokens of others are prefilled."""
    decoding = [r for r in running if not left[r]]
    budget, chunks = float(server.budget - len(decoding)), {}
    for r in running:
        if left[r] and budget > 0:
            chunks[r] = min(float(left[r]), budget)
            budget -= chunks[r]
    return decoding, chunks


def serve(
    server: Server,
    mhz: float,
    rate: float,
    count: int = 300,
    clients: int | None = None,
    seed: int = 0,
    answer: float = 200,
) -> Run:
    """Serve requests that come at a rate [1/s], inf with `clients` at a time; seed: of jitter.

    answer: its mean length in tokens.
    """
    work = np.random.default_rng(5)
    inputs = np.clip(900 * np.exp(0.6 * work.standard_normal(count) - 0.18), 16, 8000).round()
    outputs = np.exp(0.6 * work.standard_normal(count) - 0.18)
    outputs = np.clip(answer * outputs, 2, 4.5 * answer).round()
    starts = np.cumsum(work.exponential(1, count))
    starts = starts * (count / rate / starts[-1]) if clients is None else np.zeros(count)
    jitter, clock = np.random.default_rng(seed), mhz / server.highest_mhz
    left, made = inputs.copy(), np.zeros(count)
    last, ttfts = np.zeros(count), np.zeros(count)
    gaps: list[list[float]] = [[] for _ in range(count)]
    running, waiting = list[int](), list[int]()
    now, energy, sent = 0.0, 0.0, 0
    most = min(server.slots, clients or server.slots)
    for _ in range(10**6):
        while sent < count and starts[sent] <= now and (not clients or len(running) < most):
            starts[sent] = max(starts[sent], now) if clients else starts[sent]
            (running if len(running) < most and not waiting else waiting).append(sent)
            sent += 1
        while waiting and len(running) < most:
            running.append(waiting.pop(0))
        if not running:
            if sent == count:
                break
            energy, now = energy + IDLE_W * (starts[sent] - now), float(starts[sent])
            continue
        decoding, chunks = schedule(server, running, left)
        context = sum(inputs[r] + made[r] for r in decoding)
        seconds, compute, memory = server.step(clock, len(decoding), context, sum(chunks.values()))
        seconds *= float(np.exp(0.02 * jitter.standard_normal()))
        now += seconds
        energy += seconds * server.watts(clock, compute / seconds, memory / seconds)
        for r, chunk in chunks.items():
            left[r] -= chunk
        for r in decoding:
            gaps[r].append(now - last[r])
        for r in (*decoding, *(r for r in chunks if not left[r])):
            ttfts[r] = ttfts[r] or now - starts[r]
            last[r], made[r] = now, made[r] + 1
        running = [r for r in running if left[r] or made[r] < outputs[r]]
    return Run(starts, ttfts, gaps, inputs, energy / now, now, np.inf if clients else rate, clients)


def result(run: Run, is_detailed: bool = True) -> dict[str, object]:
    """The run as `vllm bench serve --save-result` writes it, with `--save-detailed` or without."""
    lengths = [len(gaps) + 1 for gaps in run.gaps]
    values = {
        "ttft": 1e3 * run.ttfts,
        "itl": 1e3 * np.concatenate(run.gaps),
        "tpot": np.array([1e3 * np.mean(gaps) for gaps in run.gaps]),
    }
    told: dict[str, object] = {
        "backend": "openai", "model_id": "made/8B", "num_prompts": len(lengths),
        "request_rate": "inf" if np.isinf(run.rate) else run.rate, "burstiness": 1.0,
        "max_concurrency": run.clients, "duration": run.duration_s, "completed": len(lengths),
        "failed": 0, "total_input_tokens": int(run.inputs.sum()),
        "total_output_tokens": sum(lengths), "request_throughput": len(lengths) / run.duration_s,
        "output_throughput": sum(lengths) / run.duration_s,
    }  # fmt: skip
    for metric, every in values.items():
        told |= {f"mean_{metric}_ms": every.mean(), f"median_{metric}_ms": np.median(every)}
        told |= {f"p{p}_{metric}_ms": float(np.percentile(every, p)) for p in (50, 90, 99)}
    if is_detailed:
        told |= {"start_times": run.starts.tolist(), "ttfts": run.ttfts.tolist(), "itls": run.gaps}
        told |= {"errors": [""] * len(lengths)}
    return told


def log_of(mhz: float, duration_s: float, power_w: float) -> str:
    """A log of nvidia-smi with a sample each second."""
    rows = []
    for second in range(int(duration_s) + 6):
        busy = 3 <= second < duration_s + 3
        watts, share = (power_w, 98) if busy else (IDLE_W, 0)
        stamp = f"2026/11/26 12:{second // 60:02}:{second % 60:02}.000"
        rows.append(
            f"{stamp}, 0, NVIDIA H100 80GB HBM3, {watts:.2f} W, {mhz:g} MHz, 2619 MHz, {share} %\n"
        )
    return HEADER + "".join(rows)


def write(run: Run, mhz: float, folder: Path, is_detailed: bool = True) -> tuple[Path, Path]:
    """The files of a run: the result, and its log."""
    files = folder / f"bench-{mhz:g}.json", folder / f"log-{mhz:g}.csv"
    files[0].write_text(json.dumps(result(run, is_detailed)), encoding="utf-8")
    files[1].write_text(log_of(mhz, run.duration_s, run.power_w), encoding="utf-8")
    return files


def without_clocks(log: Path, cap_w: float) -> Path:
    """Another log beside it, of the same samples without clocks, with a power limit [W]."""
    header, *rows = (line.split(",") for line in log.read_text(encoding="utf-8").splitlines())
    kept = [n for n, name in enumerate(header) if "clocks" not in name]
    ends = [" power.limit [W]", *[f" {cap_w:.2f} W"] * len(rows)]
    lines = [
        ",".join([*(row[n] for n in kept), end])
        for row, end in zip([header, *rows], ends, strict=True)
    ]
    file = log.with_name(f"capped-{log.name}")
    file.write_text("\n".join(lines), encoding="utf-8")
    return file
