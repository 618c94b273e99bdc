"""The settings of one experiment: a YAML file and overrides, validated before a component starts.

`--config` or `PIPELINE_CONFIG` names the file or a preset. `--set` and `PIPELINE_SET` override
single keys. Every invalid setting raises a `ConfigError`, whose message is one line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from components.evaluator.thresholds import Evaluation
from components.line_counts import SPLITS, Split
from components.serving_check.thresholds import Thresholds
from core.errors import ConfigError, not_utf8
from core.overrides import OPTION, apply_overrides, load_yaml
from core.settings import (
    Fraction,
    PathOrUrl,
    PositiveInt,
    Section,
    closest,
    first_problem,
    flat_settings,
    hint,
    keys_of_paths,
    sections_of,
)
from core.storage import absolute, expand_home, is_url
from core.values import check_values, describe_pattern
from examples.split_fractions import SplitFractions
from pipeline.cluster_settings import Cluster, Flink, Kubeflow, Vertex
from pipeline.label_setting import Task, parse_labels
from pipeline.project import check_project, resolve_paths
from pipeline.server_addresses import server_problem
from preprocessing import features
from preprocessing.reading.span_pattern import NEWEST, spans_of
from preprocessing.settings import Transform
from serving.rest.settings import Server
from trainer_module.settings import Training

PRESETS = Path(__file__).parent / "presets"
CONFIG_VARIABLE = "PIPELINE_CONFIG"
OVERRIDES_VARIABLE = "PIPELINE_SET"


class Paths(Section):
    """Folders of a run. By default all of them are below `root`."""

    root: PathOrUrl = "runs"
    """Folder for artifacts and logs."""
    metadata: PathOrUrl = ""
    """ML Metadata, an SQLite file."""
    serving: PathOrUrl = ""
    """Folder for pushed models, with a subfolder for each version."""
    checkpoints: PathOrUrl = ""
    """Folder for the checkpoints of unfinished trainings."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        root = values.get("root", "runs")
        if not isinstance(root, str):
            return values
        root = absolute(root)
        names = {"metadata": "metadata.sqlite", "serving": "serving", "checkpoints": "checkpoints"}
        below = {
            key: os.path.join(root, name) for key, name in names.items() if values.get(key) is None
        }
        return {**values, "root": root, **below}

    @field_validator("root", "serving", "checkpoints")
    @classmethod
    def _is_no_pattern(cls, path: str) -> str:
        problem = describe_pattern(path)
        if problem:
            raise ValueError(problem)
        return path


class Data(Section):
    """The raw files, and the splits that are made of them."""

    input_base: PathOrUrl | None = None
    """Folder or `gs://` prefix with the raw files; None: a sample that the package contains. With
    `{SPAN}`, or `{YYYY}`, `{MM}` and `{DD}`, and perhaps `{VERSION}` in the path, there is a folder
    or a file for each span, such as `exports/{YYYY}-{MM}-{DD}`."""
    window: PositiveInt = 1
    """Number of spans that a run reads. With 2 or more, the newest span is the test split, and the
    older ones are train and eval."""
    span: str = NEWEST
    """The newest span that a run reads: `newest`, a number, or a date such as `2026-11-28`."""
    sample: Literal["reviews", "stars"] = "reviews"
    """The sample that is read without `input_base`: synthetic product reviews that are negative or
    positive, or that have 1 to 5 stars."""
    format: Literal["auto", "fasttext", "csv", "jsonl", "parquet"] = "auto"
    """Format of the files; `auto` detects that of each file. csv: with a comma, tab, ; or |."""
    columns: dict[str, str | None] = {}
    """`label`, `title` and `text` -> the column of csv, jsonl and parquet files. A column that is
    not set is found by its usual names. With `title: null` no title is read."""
    labels: Task | dict[str, str | None] = {}
    """The classes. Empty: negative and positive, whose scale is detected once for all files.
    `stars`: each value of the scale of the labels. `each`: each label of the files. A mapping:
    label in the files -> class, or null: left out; 0 and 1 as classes are negative and
    positive."""
    splits: dict[Split, str] = {}
    """Split -> folder or glob below `input_base`; empty: all files, also those in subfolders, split
    by a hash of the text, see `split_fractions`."""
    split_fractions: SplitFractions = SplitFractions()
    max_examples: dict[Split, PositiveInt] = {}
    """Split -> maximum number of Examples; a single number limits every split."""
    max_rejected_fraction: Fraction = 0.01
    """Maximum fraction of unusable lines; a run with more of them fails."""
    statistics_examples: PositiveInt | None = 100_000
    """Approximate number of Examples of each split in the sample for its statistics; None: all
    Examples."""

    @field_validator("columns")
    @classmethod
    def _columns_are_known(cls, columns: dict[str, str | None]) -> dict[str, str | None]:
        known = ["label", "title", "text", *(column.name for column in features.further_columns())]
        for name in columns:
            if name not in known:
                raise ValueError(f"unknown column {name}, {hint(name, known)}")
        return columns

    @field_validator("labels", mode="before")
    @classmethod
    def _labels_are_text(cls, labels: Any) -> Any:
        return parse_labels(labels)

    @field_validator("max_examples", mode="before")
    @classmethod
    def _one_number_caps_every_split(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {split: value for split in SPLITS}

    @field_validator("span", mode="before")
    @classmethod
    def _span_is_text(cls, span: Any) -> Any:
        return str(span) if isinstance(span, int) and not isinstance(span, bool) else span

    @model_validator(mode="after")
    def _spans_fit_together(self) -> Data:
        spans_of(self.input_base, self.window, self.span)
        if self.window > 1 and self.splits:
            raise ValueError(
                f"splits: with window: {self.window} the newest span is the test split and the "
                "older ones are train and eval; remove splits, or set window: 1"
            )
        return self

    @model_validator(mode="after")
    def _splits_need_train(self) -> Data:
        if self.splits and "train" not in self.splits:
            raise ValueError("splits names no train files; add train: GLOB, or leave splits out")
        return self


class Beam(Section):
    """The runner of the Beam pipelines."""

    runner: Literal["direct", "flink"] = "direct"
    """`direct` runs Beam in the process of the component, `flink` on Apache Flink."""
    args: list[str] = []
    """Further arguments for Beam, such as `--runner=DataflowRunner`, `--runner=SparkRunner` or
    `--direct_num_workers=2`. They override the arguments of `beam.runner`."""
    flink: Flink = Flink()


class Push(Section):
    """The destination of a blessed model."""

    destination: Literal["filesystem", "vertex", "none"] = "filesystem"
    """Destination of a model that was blessed and passed the serving check; `vertex` (Vertex AI
    only) deploys it to an endpoint, `none` disables the Pusher."""
    keep_reviews: bool = True
    """Whether a pushed version keeps reviews of the test split for `amazon-reviews watch`: the
    texts of up to 1,000, and the scores of more."""

    @property
    def is_enabled(self) -> bool:
        """Whether a blessed model is pushed."""
        return self.destination != "none"


class Tracking(Section):
    """The record of every run outside ML Metadata."""

    mlflow: Annotated[str, Field(min_length=1)] | None = None
    """`http://` or `https://` address of the MLflow tracking server that receives every run. MLflow
    reads the user and the password from its own environment variables or its credentials
    file."""

    # Not a validator of the field, whose message would contain the password.
    @model_validator(mode="after")
    def _is_a_server_without_a_password(self) -> Tracking:
        if self.mlflow and (problem := server_problem(self.mlflow)):
            raise ValueError(f"mlflow: {problem}")
        return self


class PipelineConfig(Section):
    """All settings of one experiment.

    `make reference` writes `docs/reference/settings.md` from them.
    """

    name: Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_-]*$")] = "amazon_reviews"
    """Name of the pipeline in TFX and ML Metadata, of at most 63 characters."""
    project: PathOrUrl | None = None
    """Folder of a project with models in `models` and components in `components`; in a settings
    file it is relative to the folder of the file, and other paths in that file are relative to
    the project. None: no project."""
    cache: bool = True
    """Reuse the outputs of earlier executions that had the same inputs, settings and code."""
    paths: Paths = Field(default_factory=lambda: Paths.model_validate({}))
    data: Data = Data()
    beam: Beam = Beam()
    transform: Transform = Transform()
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    serving_check: Thresholds = Thresholds()
    push: Push = Push()
    tracking: Tracking = Tracking()
    server: Server = Server()
    cluster: Cluster = Cluster()
    vertex: Vertex = Vertex()
    kubeflow: Kubeflow = Kubeflow()


def log_folder(config: PipelineConfig) -> str:
    """Return the folder of the logs. It is local, because several processes append to the logs."""
    root = config.paths.root
    return os.path.join(os.path.abspath("runs") if is_url(root) else root, "logs")


def unsent_folder(config: PipelineConfig) -> str:
    """Return the folder of the runs that were not sent to the tracking server."""
    return os.path.join(config.paths.root, "unsent")


def recorded_settings(config: PipelineConfig) -> str:
    """Return the settings as JSON for a record of the run."""
    return json.dumps(config.model_dump())


def load_recorded_settings(recorded: str) -> PipelineConfig:
    """Return the settings that `recorded_settings` returned as JSON.

    Raises:
      pydantic.ValidationError: another version of the code recorded the settings.
    """
    return PipelineConfig.model_validate(json.loads(recorded))


def changed_settings(recorded: str) -> list[str]:
    """Return the keys of recorded settings whose values differ from the defaults.

    Args:
      recorded: the result of `recorded_settings`.
    """
    settings, defaults = (
        flat_settings(json.loads(each)) for each in (recorded, recorded_settings(PipelineConfig()))
    )
    return [key for key, value in settings.items() if (key, value) not in defaults.items()]


def load_config(
    path: str | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> PipelineConfig:
    """Read the settings and validate them.

    An empty value is an error. So the sample reviews are the input only if `data.input_base` is
    absent or `null`.

    Args:
      path: YAML file or name of a preset; None: `$PIPELINE_CONFIG`, or the preset `sample`.
      overrides: values of `--set`, which win over those of `$PIPELINE_SET`.
      environ: environment variables; None: those of this process.

    Raises:
      ConfigError: a file is missing or not readable, or a setting is unknown, wrong or empty.
    """
    environ = os.environ if environ is None else environ
    for variable in (CONFIG_VARIABLE, OVERRIDES_VARIABLE):
        if not environ.get(variable, variable).strip():
            raise ConfigError(f"{variable}: the variable is empty; set a value, or unset it")
    if path is None:
        file = find_settings(environ.get(CONFIG_VARIABLE, "sample"), CONFIG_VARIABLE)
    else:
        file = find_settings(path)
    values = read_settings(file)
    resolve_paths(values, file, keys_of_paths(PipelineConfig))
    from_environ = [environ[OVERRIDES_VARIABLE]] if OVERRIDES_VARIABLE in environ else []
    sections = dict(sections_of(PipelineConfig))
    apply_overrides(values, from_environ, OVERRIDES_VARIABLE, sections)
    apply_overrides(values, overrides, OPTION, sections)
    given = [OVERRIDES_VARIABLE] if from_environ else []
    if overrides:
        given.append(OPTION)
    origin = f"{file} with {' and '.join(given)}" if given else str(file)
    for section in sections:
        if values.get(section) == "":
            raise ConfigError(
                f"{origin}: {section}: the section is empty (an unset variable, or keys that are "
                "not indented?); set its keys, or leave it out"
            )
    check_values(values, where=origin)
    try:
        config = PipelineConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {first_problem(error, PipelineConfig)}") from None
    try:
        check_project(config.project, config.training.model, config.cluster.resources)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None
    return config


def environment_settings(path: str | None, environ: Mapping[str, str] | None = None) -> str:
    """Return the environment variables that select or override settings, with their values.

    Args:
      path: the value of `--config`, which replaces `$PIPELINE_CONFIG`; None: there is none.
      environ: environment variables; None: those of this process.

    Returns:
      Such as `PIPELINE_SET=training.epochs=3`; empty if there is no such variable.
    """
    environ = os.environ if environ is None else environ
    names = [OVERRIDES_VARIABLE] if path else [CONFIG_VARIABLE, OVERRIDES_VARIABLE]
    return ", ".join(f"{name}={environ[name]}" for name in names if name in environ)


def find_settings(source: str, origin: str = "--config") -> Path:
    """Return the path of a file of settings.

    Args:
      source: a YAML file, or the name of a preset.
      origin: the option or the environment variable with `source`, which errors name.

    Raises:
      ConfigError: there is no such file.
    """
    preset = PRESETS / f"{source}.yaml"
    if os.sep not in source and not source.endswith((".yaml", ".yml")) and preset.is_file():
        return preset
    # Unlike `Path.expanduser`, this accepts a name that begins with ~, and an unknown home.
    file = Path(expand_home(source))
    if not file.is_file():
        raise ConfigError(f"{origin}: {_no_settings(source, file)}")
    return file


def _no_settings(source: str, file: Path) -> str:
    """Return why there are no settings, and those that may be meant.

    Args:
      source: the value of the option or the variable.
      file: the path of this value.
    """
    if source and file.is_dir():
        # `amazon-reviews init mine` writes mine/mine.yaml.
        inner = [str(Path(source, each.name)) for each in _settings_in(file)]
        clause = f", such as {inner[0]}" if inner else ""
        return f"{source!r} is a folder; set a YAML file{clause}"
    presets = sorted(preset.stem for preset in PRESETS.glob("*.yaml"))
    beside = {each.stem: str(Path(source).parent / each.name) for each in _settings_in(file.parent)}
    possible = {name: name for name in presets} | beside
    meant = closest(file.stem, possible) if source else None
    if meant:
        return f"no file {source!r}, did you mean {possible[meant]}?"
    return f"no file {source!r}; set a YAML file or one of {', '.join(presets)}"


def _settings_in(folder: Path) -> list[Path]:
    """Return the YAML files of a folder that are not hidden; empty if it cannot be listed."""
    try:
        return sorted(each for each in folder.iterdir() if re.search(r"^[^.].*\.ya?ml$", each.name))
    except OSError:
        return []


def read_settings(file: Path) -> dict[str, Any]:
    """Return the values in a file of settings; empty for an empty file.

    Raises:
      ConfigError: the file cannot be read, or is no YAML with a mapping.
    """
    try:
        values = load_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: {not_utf8(error)}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        raise ConfigError(f"{file}:{line} not valid YAML: {_describe(error)}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(
            f"{file}: contains a {type(values).__name__}; settings are a mapping of keys to values"
        )
    return values


def _describe(error: yaml.YAMLError) -> str:
    """Return what is wrong in a file that is no YAML, with the remedy for a wrong indentation."""
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if problem.startswith("but "):
        return f"{getattr(error, 'context', '')} {problem}"
    if "'\\t'" in problem:
        return f"{problem}; indent with spaces"
    if "<block" in problem or problem == "mapping values are not allowed here":
        return f"{problem}; check the indentation, and put a text with ': ' into quotes"
    return str(problem)
