"""nvidia-smi's logs of runs at one clock each, and what may be amiss with them."""

from pathlib import Path

HEADER = (
    "timestamp, index, name, power.draw.instant [W], clocks.current.sm [MHz], "
    "clocks.current.memory [MHz], utilization.gpu [%], utilization.memory [%]"
)


def log(
    path: Path,
    engine_mhz: int,
    samples: int,
    power_w: float,
    gpus: int = 1,
    memory_mhz: int = 2619,
    name: str = "NVIDIA H100 80GB HBM3",
) -> Path:
    """nvidia-smi's of GPUs that work for so many tenths of a second, and idle before and after."""
    lines = [HEADER]
    for tick in range(samples + 4):
        busy = 2 <= tick < samples + 2
        lines += [
            f"2026/03/02 14:05:{10 + tick / 10:06.3f}, {gpu}, {name}, "
            f"{power_w if busy else 70:.2f} W, {engine_mhz} MHz, {memory_mhz} MHz, "
            f"{95 if busy else 0} %, {30 if busy else 0} %"
            for gpu in range(gpus)
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


def of_gpu_1(path: Path, before: str, after: str) -> None:
    """Change the rows of the second GPU of a log."""
    lines = path.read_text().splitlines()
    changed = [line.replace(before, after) if ", 1, NVIDIA" in line else line for line in lines]
    path.write_text("\n".join(changed) + "\n")


def without_idle(path: Path, end: bool = True) -> None:
    """Leave out the idle samples of a log: before the run, and behind it too."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[3 : -2 if end else None]]) + "\n")


def without(path: Path, column: int) -> None:
    """Take a column out of a log."""
    rows = [line.split(", ") for line in path.read_text().splitlines()]
    path.write_text("".join(", ".join(r[:column] + r[column + 1 :]) + "\n" for r in rows))
