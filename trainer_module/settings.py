"""The settings of a training, and the folders that it reads and writes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from core.code_file import CodeFile
from core.settings import Fraction, PositiveInt, Section
from examples.split_fractions import SplitFractions
from preprocessing.settings import Transform

MODELS = (
    "ngram_linear",
    "deep_averaging",
    "cnn_lstm",
    "text_cnn",
    "transformer",
    "wide_and_deep",
)
"""The models of the package, the default first; one file in `trainer_module/models/` each."""
ONE_PROCESS = ("auto", "one_device", "mirrored", "central_storage", "tpu")
"""Strategies of a single process; the others need a cluster."""
_ALL_DEVICES = ("multi_worker_mirrored", "parameter_server", "tpu")
"""Strategies that train on every device of a process."""
_COMPILED = ("auto", "one_device", "tpu")
"""Strategies whose step XLA can compile: all variables of the step are on its device."""
_WITHOUT_SCALED_LOSS = ("central_storage", "parameter_server", "tpu")
"""Strategies with one copy of a variable for all replicas. Keras unscales its gradient once for
each replica."""


def _check_value(value: Any) -> Any:
    # Without this check, pydantic has an error for each type of the union.
    is_finite = not isinstance(value, float) or math.isfinite(value)
    if not (isinstance(value, bool | int | float | str) and is_finite):
        raise ValueError("must be a finite number, true, false or text")
    return value


_Value = Annotated[bool | int | float | str, BeforeValidator(_check_value)]


class Training(Section):
    """The model and its training."""

    model: Annotated[str, Field(min_length=1)] = "ngram_linear"
    """Architecture: `ngram_linear`, `deep_averaging`, `cnn_lstm`, `text_cnn`, `transformer`,
    `wide_and_deep`, or the name of a file in the folder `models` of the `project`, without
    `.py`."""
    hyperparameters: dict[str, _Value] = {}
    """Hyperparameters of the model: the fields of `Hyperparameters` in its file, including the
    inherited ones."""
    strategy: Literal[
        "auto",
        "one_device",
        "mirrored",
        "central_storage",
        "multi_worker_mirrored",
        "parameter_server",
        "tpu",
    ] = "auto"
    """Distribution strategy; `auto` chooses one for the hardware."""
    devices: PositiveInt | None = None
    """Devices of a single process; None: all. Without GPUs the CPU is split into that many logical
    devices."""
    workers: PositiveInt = 1
    """Processes that train; more than one require `multi_worker_mirrored` or `parameter_server`."""
    parameter_servers: PositiveInt = 1
    """Processes that hold the variables under `parameter_server`."""
    tpu: str | None = None
    """Name or `grpc://` address of a TPU, or `local`; None: `$TPU_NAME`."""
    loop: Literal["fit", "custom"] = "fit"
    """`fit` is the loop of Keras; `custom` calls `strategy.run` itself. `parameter_server` always
    trains with `custom`."""
    epochs: PositiveInt = 2
    """Passes over the train split; `min_examples_seen` can require more."""
    min_examples_seen: PositiveInt | None = None
    """Minimum number of Examples that a training reads, over all epochs, unless early stopping ends
    it. A small train split is therefore read more than `epochs` times. None: `epochs` decides."""
    batch_size_per_replica: PositiveInt = 1024
    """Examples in a batch of one replica, at most those that it reads in an epoch; the global batch
    is this times the number of replicas."""
    learning_rate: Annotated[float, Field(ge=1e-9)] | None = None
    """Learning rate at a global batch of 1024 Examples; None: the default of the model."""
    learning_rate_scaling: Literal["linear", "square_root", "none"] = "square_root"
    """Scaling of the learning rate with the global batch."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced`: each class of the train split has the same weight in the loss, also if it is
    rare."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Course of the learning rate after the warm-up."""
    warmup: Fraction = 0.05
    """Fraction of all steps in which the learning rate rises from 0."""
    mixed_precision: Literal["none", "float16", "bfloat16"] = "none"
    """Reduced precision of the computation; `float16` requires that each variable belongs to one
    replica."""
    jit_compile: bool = False
    """Compile the train step with XLA, with static shapes; one device only."""
    steps_per_execution: PositiveInt = 1
    """Steps in one call of the compiled train function."""
    early_stopping: PositiveInt | None = None
    """Epochs without a better eval loss after which the training ends with the best weights; None:
    off."""
    checkpoint_steps: PositiveInt = 1000
    """Steps between checkpoints; every epoch also ends with a checkpoint."""
    warm_start: bool = False
    """Start from the weights of the served model."""
    tuner_trials: PositiveInt | None = None
    """Trials of a Tuner before the Trainer; None: no Tuner."""
    profile_steps: tuple[PositiveInt, PositiveInt] | None = Field(default=None, strict=False)
    """First and last call of the compiled train function that Keras's TensorBoard profiles, counted
    from the start of the process; None: off."""
    shuffle_buffer: PositiveInt = 100_000
    """Examples in the shuffle buffer of a training."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 42
    """Seed of shuffling and initialisation."""

    @model_validator(mode="after")
    def _can_be_combined(self) -> Training:
        self.check_strategy(self.strategy)
        if self.warm_start and self.hyperparameters.get("compressed"):
            raise ValueError(
                "training.warm_start: true needs a base model with all bits of its weights; unset "
                "training.hyperparameters.compressed"
            )
        if self.profile_steps and self.profile_steps[0] > self.profile_steps[1]:
            first, last = self.profile_steps
            raise ValueError(f"training.profile_steps: [{first}, {last}] ends before it begins")
        return self

    def check_strategy(self, strategy: str, reason: str = "") -> None:
        """Check that `strategy` supports these settings.

        Args:
          strategy: a value of `training.strategy`. If these settings have `auto`, it is the
            strategy that `auto` selects.
          reason: the reason why `auto` selects this strategy, for the message.

        Raises:
          ValueError: the strategy does not support the settings. The message is one line.
        """
        named = f"{strategy} ({reason})" if reason else strategy
        devices = self.devices or 1
        if strategy == "one_device" and devices > 1:
            raise ValueError(
                f"{devices} devices require training.strategy: mirrored or auto; one_device uses "
                "only one"
            )
        if self.workers > 1 and strategy in ONE_PROCESS:
            raise ValueError(
                f"{self.workers} workers require training.strategy: multi_worker_mirrored or "
                f"parameter_server; {named} trains in one process"
            )
        if self.parameter_servers > 1 and strategy != "parameter_server":
            raise ValueError(
                f"training.parameter_servers: {self.parameter_servers}, but {named} has none; set "
                "training.strategy: parameter_server, or remove training.parameter_servers"
            )
        if self.devices is not None and strategy in _ALL_DEVICES:
            other = "" if strategy == "tpu" else ", and set CUDA_VISIBLE_DEVICES to the GPUs to use"
            raise ValueError(
                f"training.devices: {devices}, but {named} trains on all devices of a process; "
                f"remove training.devices{other}"
            )
        if self.jit_compile and (strategy not in _COMPILED or (strategy != "tpu" and devices > 1)):
            raise ValueError(
                f"training.jit_compile: true compiles the step of a single device, not of {named}; "
                "set training.strategy: one_device (on a TPU every step is compiled without this "
                "setting)"
            )
        if self.mixed_precision == "float16" and strategy in _WITHOUT_SCALED_LOSS:
            raise ValueError(
                "training.mixed_precision: float16 requires a scaled loss, which Keras does not "
                f"support under {named}; set bfloat16"
            )

    def check_gpus(self, gpus: int) -> None:
        """Check that a machine with GPUs has at least `training.devices` of them.

        Args:
          gpus: number of GPUs of the machine.

        Raises:
          ValueError: the machine has GPUs, but fewer than `training.devices`.
        """
        if gpus and (self.devices or 1) > gpus:
            raise ValueError(
                f"training.devices: {self.devices} devices, but only {gpus} GPUs are available"
            )

    def resolve_auto(self, gpus: int) -> tuple[str, str]:
        """Return the strategy that `auto` selects without a cluster and a TPU, and the reason.

        Args:
          gpus: number of GPUs of the machine.
        """
        name = "mirrored" if (self.devices or gpus) > 1 else "one_device"
        devices = self.devices or "-"
        return name, f"auto: no TPU, no TF_CONFIG, {gpus} GPUs, training.devices {devices}"

    @property
    def has_peers(self) -> bool:
        """Whether the training needs more than one process."""
        return self.strategy == "parameter_server" or self.workers > 1

    def with_values(self, values: Mapping[str, Any]) -> Training:
        """Return these settings, completed by the values of a Tuner trial.

        Args:
          values: `learning_rate` or the name of a hyperparameter -> value. A value in these
            settings takes precedence.
        """
        hyperparameters = {**values, **self.hyperparameters}
        rate = hyperparameters.pop("learning_rate", None)
        update = {"learning_rate": self.learning_rate or rate, "hyperparameters": hyperparameters}
        return self.model_copy(update=update)


class TrainingSpec(Section):
    """What a training depends on beside its files, for every platform.

    Attributes:
      training: the `training` section of the settings.
      transform: the keys of the `transform` section that the model uses.
      model_file: the file of a model of the user's project; None: a model of the package.
      has_spans: whether the input has spans. A later span may have another class, so a base model
        of other classes is not an error: the weights are new.
      unseen_span: the first span of which the train split has no text, which is the test split of a
        window. If that of a base model is later, the base model may have been trained on the test
        split, so the weights are new. None: the input has no spans.
      splits: `data.splits`. If those of a base model differ, it may have been trained on the test
        split, so the weights are new. None: unknown.
      split_fractions: `data.split_fractions`. If the test split has texts with which a base model
        was trained, the weights are new.
    """

    training: Training = Training()
    transform: Transform = Transform()
    model_file: CodeFile | None = None
    has_spans: bool = False
    unseen_span: int | None = None
    splits: dict[str, str] | None = None
    split_fractions: SplitFractions = SplitFractions()


class TrainingJob(TrainingSpec):
    """One training, independent of the platform; `task.py` reads it as JSON.

    Attributes:
      train_files, eval_files: patterns of transformed TFRecord files, such as FOLDER/*. Only the
        last part of the path is a pattern.
      transform_graph: folder of the Transform output (TFT's `TFTransformOutput`).
      serving_model_dir: folder for the SavedModel.
      model_run_dir: folder for TensorBoard logs.
      checkpoint_dir: folder for checkpoints; an interrupted training continues from it.
      base_model: SavedModel with the initial weights (warm start); None: new weights.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph: str
    serving_model_dir: str
    model_run_dir: str
    checkpoint_dir: str
    base_model: str | None = None


class CustomConfig(TrainingSpec):
    """The `custom_config` of Trainer and Tuner, by which the DAG passes settings to `run_fn`.

    The DAG knows all but `unseen_span`, which the Trainer adds during the run. The text of
    `model_file` is a part of the cache key of the Trainer. Other keys are allowed: a cluster adds
    the number of GPUs, which is a part of the cache key.

    Attributes:
      training, transform: see `TrainingSpec`. They are required, so that the `custom_config` of
        another version of the code is an error, and not a training with defaults.
      code: fingerprint of the code. A training does not continue a checkpoint of different code.
      checkpoints: the parent folder of all checkpoints, which is kept after a failed execution.
    """

    model_config = ConfigDict(extra="ignore")

    training: Training
    transform: Transform
    code: str
    checkpoints: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON values, without the keys of `transform` that the model does not use."""
        transform = self.transform.model_dump(exclude_unset=True)
        return {**self.model_dump(), "transform": transform}
