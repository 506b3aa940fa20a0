"""The bottleneck curve: a kernel's utilisations give its whole surface."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from mlscale.arrays import Floats
from mlscale.counters.kernel_use import (
    TRAFFIC,
    UseSources,
    check_traffic_of_training,
    kernel_use,
    use_sources,
)
from mlscale.data.grid import ConfigGrid, grid_state
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, extra_named, warn
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.predictors.base import (
    Bases,
    Predictor,
    TrainedGpu,
    Training,
    TrainingSet,
    training_grid,
    training_sets,
)
from mlscale.predictors.bottleneck.curve import LEAST_PEAK, GpuPeaks, KernelTraits
from mlscale.predictors.bottleneck.model import (
    IntervalScores,
    PowerModel,
    TimeModel,
    holding_bounds,
)
from mlscale.predictors.conditioning import ConditionedSurfaces, condition, measured_ratios
from mlscale.predictors.features import training_profiles
from mlscale.predictors.state import Learner, State, learnt

OLDER = (
    "the model is of an older mlscale: its correction by like kernels is left out, so that its "
    "intervals are no longer checked; train it again: mlscale train"
)
NO_OTHER_GPU = Note(
    "P05", "intervals come from the trained GPU: errors on other GPUs were not measured", "warning"
)


@dataclass(frozen=True, eq=False)
class Target:
    """Where kernels are predicted.

    number: of the GPU among the trained ones, None for another. knows_peaks: whether kernels of
    it showed its peaks, else they are the mean of the trained GPUs'. notes: what to say of it.
    """

    gpu: GpuPeaks
    number: int | None
    knows_peaks: bool = True
    notes: tuple[Note, ...] = ()


@dataclass
class Bottleneck(Learner, Predictor):
    """Time by a p-norm of core, memory and latency time; power by an energy split.

    Learns time from one GPU or several, and predicts it for a GPU without training data: its
    profiles' device and base are then not those of a training table, a grid must be given, and
    `learn_peaks` should have seen profiles of it. intervals: calibrate `predict_interval` while
    fitting. amplitude: prior standard deviation of what inputs add to the physics; None is 1, and
    with several CU counts 0.1 or 3, chosen on training kernels held out.
    """

    name = "bottleneck"
    quantities: ClassVar[tuple[str, ...]] = ("time", "power")
    quantity: str = "time"
    intervals: bool = True
    amplitude: float | None = None
    time_: TimeModel = learnt()
    power_: PowerModel | None = learnt()
    scores_: IntervalScores = learnt()
    counters_: tuple[str, ...] = learnt()
    sources_: dict[str, tuple[str, ...]] = learnt()

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Return whether the device's peaks are known and the counters give its utilisations."""
        try:
            usual = measurements.usual
            [known] = measurements.measured[:, *measurements.grid.index(usual)].nonzero()
            kernel_use(measurements.select(known).profiles(usual))
        except InputError:
            return False
        return True

    def fit(self, training: Training, base: Bases) -> Self:
        """Train on the kernels of one GPU or several.

        Power is learnt from, and predicted for, the first GPU; its time from all. Raises
        InputError on fewer than two kernels or configurations, an unknown GPU, and counters
        without DRAM traffic; ImportError without torch, which training alone needs.
        """
        self.fit_together([(self, training, base)])
        return self

    @classmethod
    @extra_named("training 'bottleneck'", "train")
    def fit_together(cls, jobs: Sequence[tuple[Self, Training, Bases]]) -> None:
        """Fit many predictors, each as by `fit`, with the fits of all of them in one batch.

        Those for time and for power of the same tables share the fits of the time.
        """
        from mlscale.predictors.bottleneck.training import Job, train_together

        trainings = [
            Job(p._training_sets(training, base), p.quantity, p.intervals, p.amplitude)  # noqa: SLF001
            for p, training, base in jobs
        ]
        trained = train_together(trainings)
        for (predictor, *_), job, learnt_now in zip(jobs, trainings, trained, strict=True):
            predictor.time_, predictor.power_, predictor.scores_ = learnt_now
            predictor._remember(job.sets)  # noqa: SLF001

    def _remember(self, sets: Sequence[TrainingSet]) -> None:
        """Keep the names of the training kernels' counters, and what their numbers come from."""
        self.others_: tuple[GpuPeaks, ...] = ()
        self.counters_ = tuple(name for name in TRAFFIC if name in sets[0][0].counter_names)
        self.sources_ = {}
        for table, base in sets:
            for number, names in use_sources(table.profiles(base)).items():
                before = self.sources_.get(number, ())
                self.sources_[number] = tuple(dict.fromkeys((*before, *names)))

    def _training_sets(self, training: Training, base: Bases) -> list[TrainingSet]:
        """Return the tables with their bases. Raises InputError where they do not suffice."""
        sets = training_sets(self, training, base)
        if sum(len(table.kernels) for table, _ in sets) < 2:
            raise InputError(f"'{self.name}' needs at least two training kernels")
        if all(table.grid.size == 1 for table, _ in sets):
            raise InputError(f"'{self.name}' needs at least two configurations")
        for table, at in sets:
            if len(table.kernels) > 1:
                check_traffic_of_training(training_profiles(table, at))
        sets[0][0].quantity(self.quantity)
        return sets

    def learn_peaks(self, profiles: Profiles, grid: ConfigGrid) -> Self:
        """Take the peaks of a GPU without training data from any profiles of it; no times enter.

        The grid is what `predict` will use for it. Without counters of issued instructions that
        peak is the trained GPUs'. Raises InputError, also where no kernel has DRAM traffic.
        """
        gpu = GpuPeaks.from_use(
            profiles.device, grid, profiles.base, kernel_use(profiles, self.sources_)
        )
        if gpu.memory_peak <= LEAST_PEAK:
            raise InputError(
                f"no profiled kernel of '{profiles.device}' has DRAM traffic, so the bandwidth "
                "of its memory is unknown; profile one that has"
            )
        if gpu.issue_peak <= LEAST_PEAK:
            mean = self.time_.mean_peaks(gpu.device, grid, gpu.base)
            gpu = replace(gpu, issue_peak=mean.issue_peak)
        self.others_ = (*self.others_, gpu)
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """Return the surfaces, on the training grid or on another GPU's. Raises InputError."""
        conditioned, _ = self.conditioned(profiles, grid)
        return conditioned.surfaces()

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Return surfaces with low and high, which hold that share of kernel x configuration.

        low and high are None where they were not calibrated: not asked for, or fewer than three
        applications. On a GPU without training data those of kernels that use no unit or are
        short reach further, see `holding_bounds`. Raises InputError unless coverage is between 0
        and 1.
        """
        conditioned, scale = self.conditioned(profiles, grid)
        if not self.scores_:
            return conditioned.surfaces()
        target = self._target(profiles, grid)
        score = self.scores_.at(coverage, target.number, target.knows_peaks)
        surfaces = conditioned.surfaces(score * scale * conditioned.narrowing())
        if profiles.device in self.trained_devices():
            return surfaces
        return holding_bounds(surfaces, profiles, kernel_use(profiles, self.sources_))

    def trained_devices(self) -> tuple[str, ...]:
        """Return the GPUs that time was learnt from."""
        return tuple(gpu.device for gpu in self.time_.gpus)

    def trained_grids(self) -> tuple[ConfigGrid, ...]:
        """The grid of each training table."""
        return tuple(gpu.grid for gpu in self.time_.gpus)

    def needs(self) -> tuple[str, ...]:
        """Return the counters of DRAM traffic; others may be missing."""
        return self.counters_

    def other_sources(self, profiles: Profiles) -> UseSources:
        """Return by number where a profile has it from, other than the training kernels had."""
        trained = {number: names for number, names in self.sources_.items() if names}
        here = use_sources(profiles, trained)
        others = {n: tuple(s for s in here[n] if s not in known) for n, known in trained.items()}
        return {number: names for number, names in others.items() if names}

    def feature_names(self) -> tuple[str, ...]:
        """Return the inputs of the curve, and the counters of DRAM traffic."""
        return (*self.time_.process.names, *self.counters_)

    def conditioned(
        self, profiles: Profiles, grid: ConfigGrid | None
    ) -> tuple[ConditionedSurfaces, Floats]:
        """Return surfaces given the points, and what half-widths without points go with, (K, N)."""
        target = self._target(profiles, grid)
        gpu = target.gpu
        kernels = KernelTraits.from_profiles(profiles, self.sources_)
        time = prior = self.time_.prior(kernels, gpu, target.number)
        if self.power_ is not None:
            trained = self.time_.gpus[0].grid
            other_grid = None if gpu.grid == trained else trained
            prior = self.power_.prior(kernels.use, profiles.base_power_w, gpu, time, other_grid)
        quantities = dict.fromkeys(("time", self.quantity))
        posterior = condition(prior, measured_ratios(profiles, gpu.grid, *quantities))
        pairs = zip(self.time_.flags(kernels, gpu), posterior.surprise_flags(), strict=True)
        flags = tuple((*target.notes, *inputs, *surprise) for inputs, surprise in pairs)
        conditioned = ConditionedSurfaces(gpu.grid, profiles.base, posterior, flags)
        return conditioned, self.time_.interval_scale(kernels, gpu, time)

    def _target(self, profiles: Profiles, grid: ConfigGrid | None) -> Target:
        """Return where the profiles are predicted. Raises InputError."""
        gpus, place = self.time_.gpus, (profiles.device, profiles.base)
        trained = [number for number, gpu in enumerate(gpus) if (gpu.device, gpu.base) == place]
        if self.power_ is not None:
            if 0 not in trained:
                raise InputError(
                    f"the model predicts power only of '{gpus[0].device}' at {gpus[0].base}; "
                    f"the profile is of '{profiles.device}' at {profiles.base}"
                )
            trained = [0]
        if grid is None:
            grid = training_grid([TrainedGpu(g.device, g.grid, g.base) for g in gpus], profiles)
        for number in trained:
            if gpus[number].grid == grid:
                return Target(gpus[number], number)
        if self.time_.shares == 1 and grid.cu_count != (profiles.base.cu_count,):
            raise InputError(
                "no training table has several CU counts, so the model predicts the profile's "
                f"alone, cu={profiles.base.cu_count}; for others, at the profile's clocks, give "
                f"{parameter('model', 'h100-sms')}, or a reading at one too: "
                f"{parameter('also', 'FILE')}@cu=…"
            )
        if not trained:
            return self._untrained(profiles, grid)
        return Target(replace(gpus[trained[0]], grid=grid), trained[0])

    def _untrained(self, profiles: Profiles, grid: ConfigGrid) -> Target:
        """Return a GPU that there are no training data of at this base."""
        notes = [Note("G03", f"no training data of {profiles.device} at {profiles.base}")]
        if self.scores_ and not self.scores_.known_peaks.size:
            notes.append(NO_OTHER_GPU)
        for gpu in (*self.others_, *self.time_.gpus):
            if gpu.device == profiles.device:
                here = replace(gpu, grid=grid, base=profiles.base)
                return Target(here, None, notes=tuple(notes))
        gpu = self.time_.mean_peaks(profiles.device, grid, profiles.base)
        told = f"assumed: kernels reach at most {100 * gpu.memory_peak:.0f} % of peak bandwidth"
        notes.append(Note("G03", told))
        return Target(gpu, None, knows_peaks=False, notes=tuple(notes))

    def state(self) -> State:
        """Return what was learnt, and grid and base of the first GPU."""
        first = self.time_.gpus[0]
        return {**grid_state(first.grid, first.base), **super().state()}

    def restore(self, state: State) -> Self:
        """Take over what `state` gave, of an older model all but its correction."""
        if "corrections" in state["time"]:
            warn("P05", OLDER)
        super().restore(state)
        self.others_ = ()
        return self
