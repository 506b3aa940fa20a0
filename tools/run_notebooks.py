"""Execute notebooks from their first cell to their last, and write them with what they show.

    python tools/run_notebooks.py FOLDER NOTEBOOK...

Each runs in an empty folder of its own, with this environment's `mlscale` first on the path. A cell
that fails ends the work before that notebook is written.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LONGEST_CELL_S = 600


def executed(notebook: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs as they are now, and nothing of the machine or the hour."""
    content = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            content,
            timeout=LONGEST_CELL_S,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            record_timing=False,
            coalesce_streams=True,
        ).execute()
    content.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return content


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        nbformat.write(executed(Path(name)), folder / Path(name).name)
