"""Attack mlscale as bad luck and bad will do, and count what it does not bear.

    python tools/reliability.py [--trials N] [--mutations N] [--seed S] [--only WORD]

Prints a line for each attack, trials and faults, then what the faults are; docs/reliability.md
shows what it printed. As root it makes small and read-only file systems; else these are left out.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import reliability_commands
import reliability_mutations
import reliability_processes
import reliability_tables
from reliability_trials import Faults, Files

Outcome = tuple[str, int, Faults]


def main() -> int:
    """Run the attacks; the exit status is 1 where anything was not borne."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trials", type=int, default=10, help="of each attack that has no end of its own"
    )
    parser.add_argument("--mutations", type=int, default=20_000, help="of files of all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="attacks in whose name this word stands")
    options = parser.parse_args()
    outcomes = []
    print(f"{'attack':<48}{'trials':>8}{'faults':>8}")
    with TemporaryDirectory() as folder:
        for name, trials, faults in _attacks(Path(folder), options):
            outcomes.append((name, faults))
            print(f"{name:<48}{trials:>8}{len(faults):>8}", flush=True)
    for name, faults in outcomes:
        for fault in faults:
            print(f"{name}: {fault}")
    return int(any(faults for _, faults in outcomes))


def _attacks(folder: Path, options: argparse.Namespace) -> Iterator[Outcome]:
    """Yield each attack's name, how often it was tried, and its faults."""
    files = Files(folder)
    for module in (reliability_commands, reliability_tables, reliability_processes):
        attacks = module.attacks(files, options.trials, options.seed)
        for name, trials in attacks.items():
            if options.only in name:
                yield name, len(trials), [fault for trial in trials for fault in trial()]
    yield from reliability_mutations.attack(
        options.only, options.mutations, options.trials, options.seed
    )


if __name__ == "__main__":
    sys.exit(main())
