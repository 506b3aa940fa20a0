"""The command line as a process: `python -m mlscale`, and the command mlscale."""

import gc
import sys


def main() -> int:
    """Run the command line; returns the exit status. An interrupt of its imports is one line."""
    gc.set_threshold(100_000)  # answers are many small objects, and hardly in cycles
    try:
        from mlscale.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("mlscale: interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT, as shells count
    finally:
        gc.freeze()  # or Python looks through all that is left before it ends


if __name__ == "__main__":
    sys.exit(main())
