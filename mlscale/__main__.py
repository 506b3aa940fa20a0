"""The command line as a process: `python -m mlscale`, and the command mlscale.

What only a whole process can do stands here: streams that the shell closed, and Ctrl-C at any
moment, also before the command has begun and after it has ended. Nothing is imported here but what
the interpreter has already, so that nearly no time passes before an interrupt is answered.
"""

import _signal as signal  # type: ignore[import-not-found]  # the part of it that is built in
import _thread
import gc
import os
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main() -> int:
    """Run the command line; returns the exit status. It prints no traceback of an interrupt."""
    interrupts: list[int] = []
    try:
        _note_in(interrupts)
        sys.unraisablehook = _show_unraisable
        _open_closed_streams()
        gc.disable()  # until the command begins: what imports make stays, and is not searched
        from mlscale.cli.main import main as run

        status = run()
    except SystemExit as end:  # of --help and --version
        status = int(end.code or 0)
    except (KeyboardInterrupt, Exception):
        if not interrupts:
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("mlscale: interrupted", file=sys.stderr)
        status = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done; what is left takes no time
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


def _note_in(interrupts: list[int]) -> None:
    """Add each interrupt to the list, as libraries make other errors of some."""

    def note(number: int, _frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not that of a nohup
        signal.signal(signal.SIGINT, note)


def _open_closed_streams() -> None:
    """Open nothing in place of a stream that is closed, lest the next file take its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, "r")
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _show_unraisable(problem: "sys.UnraisableHookArgs") -> None:
    """Interrupt again where Python had to ignore it, as in a destructor."""
    if problem.exc_type is KeyboardInterrupt:
        import threading

        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(problem)


if __name__ == "__main__":
    sys.exit(main())
