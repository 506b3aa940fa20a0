"""The command line as a process: `python -m mlscale`, and the command mlscale."""

import sys


def main() -> int:
    """Run the command line; returns the exit status. An interrupt of its imports is one line."""
    try:
        from mlscale.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("mlscale: interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT, as shells count


if __name__ == "__main__":
    sys.exit(main())
