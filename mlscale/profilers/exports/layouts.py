"""The kinds of tables that profilers write, each known by the names in its header."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlscale.profilers.exports.values import TIME_UNITS_NS

COUNTING_TOOLS = ("ncu", "rocprof", "rocprofv3")
TOOLS = (*COUNTING_TOOLS, "nsys", "torch")  # the last two give times alone


@dataclass(frozen=True)
class ExportLayout:
    """One kind of table that a profiler writes.

    Attributes:
        key: names the reader.
        tool: whose mapping to Table II holds.
        title: what a user is shown.
        needs: names of columns, all of which it has; a name with '|' is any of several.
        lacks: names of columns of which it has none.
        first: the name of the first column.
        ends_at_blank: a blank line ends the table.
        every_row_quoted: a line that does not begin with a quote is the program's own output.
    """

    key: str
    tool: str
    title: str
    needs: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    first: str | None = None
    ends_at_blank: bool = False
    every_row_quoted: bool = False

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a header is of this layout."""
        if self.first is not None and (not names or names[0] != self.first):
            return False
        present = set(names)
        return all(present & set(need.split("|")) for need in self.needs) and not (
            present & set(self.lacks)
        )


def _in_units(name: str) -> str:
    """A column of nsys in any unit of time; old versions leave out the unit, which is ns."""
    return "|".join([name, *(f"{name} ({unit})" for unit in TIME_UNITS_NS)])


LAYOUTS = (
    ExportLayout(
        "ncu-details", "ncu", "Nsight Compute, details page",
        ("Kernel Name", "Metric Name", "Metric Unit", "Metric Value"), first="ID",
        every_row_quoted=True,
    ),
    ExportLayout(
        "ncu-raw", "ncu", "Nsight Compute, raw page",
        ("Kernel Name", "Process ID"), lacks=("Metric Name",), first="ID", every_row_quoted=True,
    ),
    ExportLayout(
        "nsys-sum", "nsys", "Nsight Systems, cuda_gpu_kern_sum",
        (_in_units("Total Time"), "Instances", "Name"),
        lacks=("Category", "Style", "Source", "PID"), ends_at_blank=True,
    ),
    ExportLayout(
        "nsys-trace", "nsys", "Nsight Systems, cuda_gpu_trace",
        (_in_units("Start"), _in_units("Duration"), "GrdX", "BlkX", "Name"), ends_at_blank=True,
    ),
    ExportLayout(
        "rocprofv3-counters", "rocprofv3", "rocprofv3 counter collection",
        ("Kernel_Name", "Dispatch_Id|Dispatch_ID", "Counter_Name", "Counter_Value"),
    ),
    ExportLayout(
        "rocprofv3-trace", "rocprofv3", "rocprofv3 kernel trace",
        ("Kind", "Kernel_Name", "Dispatch_Id", "Start_Timestamp", "End_Timestamp"),
    ),
    ExportLayout(
        "rocprof", "rocprof", "rocprof v1 or v2",
        ("KernelName|Kernel_Name", "grd|Grid_Size", "wgr|Workgroup_Size"),
        lacks=("Counter_Name", "Kind"),
    ),
    ExportLayout(
        "rocprof-machine", "rocprof", "rocprof-compute's sysinfo.csv beside the counters",
        ("gpu_arch", "cu_per_gpu"), lacks=("Kernel_Name",),
    ),
    ExportLayout(
        "rocprofv3-agents", "rocprofv3", "rocprofv3's agent_info.csv beside the counters",
        ("Agent_Type", "Cu_Count", "Name", "Product_Name"),
    ),
)  # fmt: skip
# These have no header.
NCU_TEXT = ExportLayout("ncu-text", "ncu", "Nsight Compute, text", ())
NSYS_SQLITE = ExportLayout("nsys-sqlite", "nsys", "Nsight Systems, SQLite", ())
ROCPD_SQLITE = ExportLayout("rocprofv3-sqlite", "rocprofv3", "rocprofv3, SQLite (rocpd)", ())
TORCH_TRACE = ExportLayout("torch-trace", "torch", "PyTorch's profiler, Chrome trace", ())
_WITHOUT_HEADER = (NCU_TEXT, NSYS_SQLITE, ROCPD_SQLITE, TORCH_TRACE)


def titles(tool: str) -> list[str]:
    """What is read of a tool, in words."""
    return [layout.title for layout in (*LAYOUTS, *_WITHOUT_HEADER) if layout.tool == tool]


def layout_of(names: Sequence[str]) -> ExportLayout | None:
    """The layout of a header; None where it is no header that is known."""
    return next((layout for layout in LAYOUTS if layout.fits(names)), None)
