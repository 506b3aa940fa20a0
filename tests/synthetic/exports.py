"""Made excerpts of profilers' exports, in the layouts of the tools (docs/howto/profile.md)."""

from collections.abc import Mapping, Sequence

BASE = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 500.0}
LONG = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit",
    "Metric Value",
)  # fmt: skip
# One launch on AMD of 10 waves in 10 workgroups; the features are counts of a wave.
AMD = {
    "SQ_WAVES": 10, "SQ_INSTS_VALU": 500, "SQ_INSTS_SALU": 200, "SQ_INSTS_SMEM": 50,
    "SQ_INSTS_VMEM_RD": 100, "SQ_INSTS_VMEM_WR": 50, "SQ_INSTS_LDS": 100,
    "GRBM_GUI_ACTIVE": 8000,
}  # fmt: skip
RAW_SECTION = "Command line profiler metrics"

# One launch of 10 us on 4 SMs: 400 VALU, 100 uniform, 200 loads, 100 stores, 200 shared.
NCU = {
    "gpu__time_duration.sum": ("ns", "10000"),
    "sm__cycles_elapsed.sum": ("cycle", "40000"),
    "sm__inst_executed_pipe_alu.sum": ("inst", "150"),
    "sm__inst_executed_pipe_fma.sum": ("inst", "200"),
    "sm__inst_executed_pipe_fp64.sum": ("inst", "0"),
    "sm__inst_executed_pipe_xu.sum": ("inst", "50"),
    "sm__inst_executed_pipe_fp16.sum": ("", "n/a"),
    "sm__inst_executed_pipe_uniform.sum": ("inst", "100"),
    "sm__sass_inst_executed_op_global_ld.sum": ("inst", "180"),
    "sm__sass_inst_executed_op_local_ld.sum": ("inst", "20"),
    "sm__sass_inst_executed_op_global_st.sum": ("inst", "100"),
    "sm__sass_inst_executed_op_local_st.sum": ("inst", "0"),
    "sm__sass_inst_executed_op_shared_ld.sum": ("inst", "120"),
    "sm__sass_inst_executed_op_shared_st.sum": ("inst", "80"),
    "dram__bytes_read.sum": ("Kbyte", "20"),
    "dram__bytes_write.sum": ("byte", "5,000"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "75"),
}
# A program's own output, then two launches with the newer header, units scaled launch by launch.
NCU_TEXT = """\
==PROF== Connected to process 77 (/app)
==PROF== Profiling "add" - 0: 0%....50%....100% - 8 passes
  a line of the program, indented
==PROF== Disconnected from process 77
[77] app@127.0.0.1
  void add<float, 2>(float *, int) (8, 2, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Mhz       500.00
    SM Frequency                    Ghz         1.00
    Memory Throughput                 %        60.00
    DRAM Throughput                   %        20.00
    Duration                         us        20.00
    Compute (SM) Throughput           %        40.00
    ----------------------- ----------- ------------

    OPT   This kernel grid is too small.

    Section: Launch Statistics
    --------------------------- ----------- ------------
    Metric Name                 Metric Unit Metric Value
    --------------------------- ----------- ------------
    # SMs                                SM            4
    Threads                          thread        2,048
    --------------------------- ----------- ------------

  void add<float, 2>(float *, int) (8, 2, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Throughput                   %        30.00
    Duration                         ms         0.04
    ----------------------- ----------- ------------
"""


def quoted(cells: Sequence[object]) -> str:
    """A line as ncu writes it."""
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def long_rows(
    launch: int = 0,
    kernel: str = "void k<int, 2>(float *, int)",
    metrics: Mapping[str, tuple[str, str]] = NCU,
    grid: str = "(8, 2, 1)",
    gpu: int = 0,
) -> str:
    """The rows of one launch on the details page, 15 columns."""
    head = [launch, 77, "app", "127.0.0.1", kernel, 1, 7, "(128, 1, 1)", grid, gpu, "8.6"]
    return "".join(
        quoted([*head, RAW_SECTION, name, unit, value]) for name, (unit, value) in metrics.items()
    )


def long_page(*launches: str, before: str = "==PROF== Connected to process 77 (/app)\n") -> str:
    """A details page."""
    return before + quoted(LONG) + "".join(launches or [long_rows()])


def wide_page(rows: Sequence[Mapping[str, str]] = ({},), units: bool = True) -> str:
    """A raw page of launches 0, 1, …; a row replaces values of NCU."""
    head = [*LONG[:-4], *NCU]
    text = quoted(head)
    if units:
        text += quoted([*[""] * 11, *(unit for unit, _ in NCU.values())])
    for launch, changed in enumerate(rows):
        values = [changed.get(name, value) for name, (_, value) in NCU.items()]
        grid = changed.get("Grid Size", "(8, 2, 1)")
        identity = [launch, 77, "app", "h", "void k<int, 2>(float *, int)", 1, 7, "(128, 1, 1)"]
        text += quoted([*identity, grid, changed.get("Device", 0), "8.6", *values])
    return text


ROCPROF_HEADER = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,"
    "sgpr,wave_size,sig,obj"
)


def rocprof_v1(
    counters: Mapping[str, object], launches: int = 1, times: Sequence[tuple[float, float]] = ()
) -> str:
    """A v1 file of one kernel with 10 workgroups of 64."""
    header = ROCPROF_HEADER + "".join(f",{name}" for name in counters)
    header += ",DispatchNs,BeginNs,EndNs,CompleteNs" if times else ""
    text = header + "\n"
    for i in range(launches):
        cells = [str(value) for value in counters.values()]
        if times:
            cells += ["5", str(times[i][0]), str(times[i][1]), "9"]
        text += f'{i},"f(int, int) [clone .kd]",0,0,0,1,1,640,64,0,0,8,0,16,64,0x0,0x7f,'
        text += ",".join(cells) + "\n"
    return text


V3_COUNTERS = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size",'
    '"Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count",'
    '"Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp",'
    '"End_Timestamp"\n'
)


def rocprofv3(counters: Mapping[str, float]) -> str:
    """A v3 pass: dispatches 1 and 2 of one kernel, all counters of each."""
    return V3_COUNTERS + "".join(
        f'{d},{d},"Agent 4",1,7,7,640,3,"f(int, int)",64,0,0,8,0,16,"{name}",{value:.6f},'
        "1000,3000\n"
        for d in (1, 2)
        for name, value in counters.items()
    )


V3_TRACE = (
    '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","Workgroup_Size_X","Workgroup_Size_Y",'
    '"Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    '"KERNEL_DISPATCH","Agent 4",1,7,2,3,"f(int, int)",2,5000,9000,64,1,1,64,10,1\n'
    '"KERNEL_DISPATCH","Agent 4",1,7,1,3,"f(int, int)",1,1000,3000,64,1,1,64,10,1\n'
)
