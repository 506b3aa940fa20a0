"""Which tool wrote a table: known by the names in its header, never by the file's name."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One kind of table.

    tool: whose mapping to Table II holds. needs: names of columns, all of which it has; a name
    with '|' is any of several. lacks: names of which it has none. first: name of the first
    column. gives: 'counters', 'time' or 'both'.
    """

    key: str
    tool: str
    title: str
    gives: str
    needs: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    first: str | None = None
    ends_at_blank: bool = False
    every_row_quoted: bool = False
    braces: bool = False

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a header is of this layout."""
        if self.first is not None and (not names or names[0] != self.first):
            return False
        have = set(names)
        return all(have & set(need.split("|")) for need in self.needs) and not have & set(
            self.lacks
        )


LAYOUTS = (
    Layout(
        "ncu-details", "ncu", "Nsight Compute, details page", "both",
        ("Kernel Name", "Metric Name", "Metric Unit", "Metric Value"), first="ID",
        every_row_quoted=True,
    ),
    Layout(
        "ncu-raw", "ncu", "Nsight Compute, raw page", "both",
        ("Kernel Name", "Process ID"), lacks=("Metric Name",), first="ID", every_row_quoted=True,
    ),
    Layout(
        "nvprof-metrics", "nvprof", "nvprof --metrics", "counters",
        ("Device", "Kernel", "Invocations", "Metric Name", "Avg"), ends_at_blank=True,
        every_row_quoted=True,
    ),
    Layout(
        "nvprof-trace", "nvprof", "nvprof --print-gpu-trace", "time",
        ("Start", "Duration", "Grid X", "Block X", "Name"), ends_at_blank=True,
    ),
    Layout(
        "nvprof-summary", "nvprof", "nvprof --print-gpu-summary", "time",
        ("Time(%)", "Time", "Calls", "Avg", "Name"), ends_at_blank=True, every_row_quoted=False,
    ),
    Layout(
        "rocprofv3-counters", "rocprofv3", "rocprofv3 counter collection", "both",
        ("Kernel_Name", "Dispatch_Id|Dispatch_ID", "Counter_Name", "Counter_Value"),
    ),
    Layout(
        "rocprofv3-trace", "rocprofv3", "rocprofv3 kernel trace", "time",
        ("Kind", "Kernel_Name", "Dispatch_Id", "Start_Timestamp", "End_Timestamp"),
    ),
    Layout(
        "rocprof", "rocprof", "rocprof v1 or v2", "both",
        ("KernelName|Kernel_Name", "grd|Grid_Size", "wgr|Workgroup_Size"),
        lacks=("Counter_Name", "Kind"),
    ),
    Layout(
        "codexl", "codexl", "CodeXL or APP Profiler", "both",
        ("ExecutionOrder", "GlobalWorkSize"), first="Method", braces=True,
    ),
)  # fmt: skip

# Tables of these tools that are not read: what they are, what to give instead, and their columns.
UNREAD = (
    (
        "nvprof's metrics launch by launch (--print-gpu-trace with --metrics)",
        "run --metrics alone, and give --print-gpu-trace alone as a further file",
        ("Device", "Context", "Stream", "Kernel"),
    ),
)

TOOLS = ("ncu", "nvprof", "rocprof", "rocprofv3", "codexl")


def layout_of(names: Sequence[str]) -> Layout | None:
    """The layout of a header; None where it is no header that is known."""
    return next((layout for layout in LAYOUTS if layout.fits(names)), None)


def why_unread(names: Sequence[str]) -> str | None:
    """What a header is that is known but not read, and the mend; None for any other."""
    have = set(names)
    return next((f"{what}; {mend}" for what, mend, needs in UNREAD if have >= set(needs)), None)
