"""The runs in ML Metadata: their components, outputs, settings and results, for reports and lists.

The local runner adds the settings, the result and the error of a run to its `pipeline_run` context.
ML Metadata is the only store.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import Any, NamedTuple

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.line_counts import LineCounts
from components.node_ids import (
    EVALUATOR,
    EXAMPLE_GEN,
    EXAMPLE_VALIDATOR,
    PUSHER,
    REPORT,
    SERVING_CHECK,
    STATISTICS_GEN,
    TRAINER,
    TUNER,
)
from components.properties import (
    BASELINE_PROPERTY,
    BLESSED_PROPERTY,
    CODE_KEY,
    NEWEST_SPAN_PROPERTY,
    PUSHED,
    PUSHED_DESTINATION,
)
from components.review_example_gen.inputs import OPTIONS_KEY
from components.run_report.outcome import Outcome
from components.run_report.verdict import UNFINISHED, Decision
from core.errors import InputError
from core.settings import flat_settings
from core.storage import is_url

SETTINGS, VERSIONS, OUTCOME = "settings", "versions", "outcome"
"""Custom properties of the context: the settings, the versions of libraries and the outcome, each
as JSON."""
ERROR, STATE = "error", "state"
"""Custom properties of the context: the error of the run, and a digest of everything that the run
read and of the models at the destination after the run."""
RUN_TYPE = "pipeline_run"
"""The type of the context of a run."""


class Output(NamedTuple):
    """An output of a component.

    Attributes:
      node: the id of the node.
      key: the key of the output.
    """

    node: str
    key: str


DESCRIBED = {
    "rejected": Output(EXAMPLE_GEN, "rejected"),
    "statistics": Output(STATISTICS_GEN, "statistics"),
    "anomalies": Output(EXAMPLE_VALIDATOR, "anomalies"),
    "examples": Output(EXAMPLE_GEN, "examples"),
    "model": Output(TRAINER, "model"),
    "model_run": Output(TRAINER, "model_run"),
    "evaluation": Output(EVALUATOR, "evaluation"),
    "check": Output(SERVING_CHECK, "blessing"),
    "trials": Output(TUNER, "tuner_results"),
}
"""Input of RunReport -> the output that it is."""
_LIBRARIES = ("tfx", "tensorflow", "tf_keras", "apache-beam", "tensorflow-transform")
_NODE_TYPE = "node"
_STATES = {
    mlmd.Execution.COMPLETE: "done",
    mlmd.Execution.CACHED: "cached",
    mlmd.Execution.FAILED: "failed",
}


class Step(NamedTuple):
    """One component of a run.

    Attributes:
      name: the id of the node.
      state: `done`, `cached`, `failed`, or UNFINISHED if it was killed.
      started: the start of the component, in seconds since the start of the run.
      seconds: the duration of the component.
    """

    name: str
    state: str
    started: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """One run of the pipeline. A failed run lacks the artifacts of later components.

    Attributes:
      name: name of the pipeline.
      id: id of the run.
      uris: key of DESCRIBED -> URI of the artifact.
      started: seconds since 1970; None if it is unknown.
      settings: the settings of the run, section -> key -> value; empty if they are unknown.
      changed: the keys `section.key` that differ from the defaults.
      versions: library -> version during the run; empty if they are unknown.
      steps: the components, in the order in which they ran; empty if ML Metadata is not accessible.
      error: the error of a failed run in one line; empty if no component failed.
      blessed: whether the Evaluator blessed the model; None if it did not decide.
      baseline: the name of the model that the candidate was compared with; empty if there was none.
      pushed_to: the folder or the endpoint of the pushed model; empty if no model was pushed.
      outcome: the outcome of the run; None if it did not finish.
      outputs: id of a node -> key of an output -> artifact in ML Metadata, for the components that
        succeeded.
      code: id of a node -> fingerprint of its code, for the components that started.
      input_fingerprint: the fingerprint of the input files; empty if it is unknown.
      span: the newest span that was read; empty for an input without spans, or if it is unknown.
    """

    name: str
    id: str
    uris: Mapping[str, str] = field(default_factory=dict)
    started: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    changed: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    error: str = ""
    blessed: bool | None = None
    baseline: str = ""
    pushed_to: str = ""
    outcome: Outcome | None = None
    outputs: Mapping[str, Mapping[str, mlmd.Artifact]] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    input_fingerprint: str = ""
    span: str = ""

    @property
    def seconds(self) -> float:
        """Seconds from the start of the run to the end of its last component."""
        return max((step.started + step.seconds for step in self.steps), default=0.0)


def recorded_decision(run: Run) -> Decision:
    """Return what decided about the model of a run that has ended."""
    decision = run.outcome.decision if run.outcome else Decision(blessed=None)
    return replace(decision, error=run.error)


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that affect the result of a run."""
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }


def read_runs(store: MetadataStore, run_id: str | None = None) -> list[Run]:
    """Return the runs, the newest first.

    Args:
      store: ML Metadata with the runs.
      run_id: the id of the only run that is returned, if it exists; None: all runs.

    Raises:
      InputError: the recorded outcome of a run cannot be read.
    """
    return read_contexts(store, [c for c in newest_first(store) if run_id in (None, c.name)])


def read_contexts(store: MetadataStore, contexts: Sequence[mlmd.Context]) -> list[Run]:
    """Return the runs of some contexts, in their order.

    Args:
      store: ML Metadata with the runs.
      contexts: results of `newest_first`.

    Raises:
      InputError: the recorded outcome of a run cannot be read.
    """
    nodes = _node_ids(store) if contexts else {}
    return [_read_run(store, context, nodes) for context in contexts]


def read_run_by_output(store: MetadataStore, output: str) -> Run:
    """Return the run to which an output of a component belongs.

    Args:
      store: ML Metadata with the run.
      output: URI of the output. Its last part is the id of the execution.

    Raises:
      InputError: the recorded outcome of the run cannot be read.
      ValueError: the last part is not an id, or the execution belongs to no run.
    """
    contexts = store.get_contexts_by_execution(int(os.path.basename(output)))
    [run_id] = [context.name for context in contexts if context.type == RUN_TYPE]
    [run] = read_runs(store, run_id)
    return run


def record_outcome(store: MetadataStore, run_id: str, outcome: Outcome) -> None:
    """Add the outcome to the context of a run, if it exists. `Run.outcome` returns it."""
    record(store, run_id, OUTCOME, json.dumps(outcome.to_json()))


def record(store: MetadataStore, run_id: str, key: str, value: str) -> None:
    """Add a custom property to the context of a run, if it exists.

    Args:
      store: ML Metadata with the run.
      run_id: the id of the run. Its context exists from its first component on.
      key: one of SETTINGS, VERSIONS, OUTCOME, ERROR and STATE.
      value: the value.
    """
    context = store.get_context_by_type_and_name(RUN_TYPE, run_id)
    if context is not None:
        context.custom_properties[key].string_value = value
        store.put_contexts([context])


def last_state(store: MetadataStore) -> tuple[str, str]:
    """Return the id and the STATE of the last run that was started; both are empty without one."""
    return next(((run.name, _text(run, STATE)) for run in newest_first(store)), ("", ""))


def last_settings(store: MetadataStore, file: str, folders: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the last run with given folders; empty if there is no such run.

    The path of a folder relative to ML Metadata is compared too, because both may have been moved
    or copied since the run, or have several paths.

    Args:
      store: ML Metadata with the runs.
      file: the path of its file, the setting `paths.metadata`.
      folders: setting as `section.key` -> the folder or the URL that the run must have.
    """
    for context in newest_first(store):
        settings: dict[str, Any] = json.loads(_text(context, SETTINGS) or "{}")
        if not settings:
            continue
        flat = flat_settings(settings)
        then = settings["paths"]["metadata"]
        if all(
            folder == flat.get(key) or _place(folder, file) == _place(flat.get(key), then)
            for key, folder in folders.items()
        ):
            return settings
    return {}


def _place(folder: str | None, file: str) -> str | None:
    """Return the path of a local folder relative to that of ML Metadata; others as they are.

    Args:
      folder: the folder, its URL, or None.
      file: the path of ML Metadata.
    """
    if folder is None or is_url(folder):
        return folder
    return os.path.relpath(folder, os.path.dirname(file))


def destination(pushed: mlmd.Artifact | None) -> str:
    """Return the location that a model was pushed to; empty if no model was pushed.

    Args:
      pushed: the output of the Pusher; None if the run has none.
    """
    return _text(pushed, PUSHED_DESTINATION) if _int(pushed, PUSHED) else ""


def recorded_counts(rejected: mlmd.Artifact) -> LineCounts:
    """Return the counts of the lines of an input, from the properties of RejectedLines.

    Args:
      rejected: the output of ReviewExampleGen.
    """
    properties = rejected.custom_properties.items()
    counts = {name: value.int_value for name, value in properties if value.HasField("int_value")}
    return LineCounts.from_properties(counts)


def exists(artifact: mlmd.Artifact) -> bool:
    """Return whether TFX's cache would reuse an artifact on this machine."""
    return artifact.state == mlmd.Artifact.LIVE and os.path.exists(artifact.uri)


def newest_first(store: MetadataStore) -> list[mlmd.Context]:
    """Return the contexts of all runs, the newest first."""
    contexts = store.get_contexts_by_type(RUN_TYPE)
    return sorted(contexts, key=lambda context: context.id, reverse=True)


def _read_run(store: MetadataStore, context: mlmd.Context, nodes: Mapping[int, str]) -> Run:
    executions = sorted(store.get_executions_by_context(context.id), key=lambda found: found.id)
    started = context.create_time_since_epoch / 1000
    settings = json.loads(_text(context, SETTINGS) or "{}")
    outputs = _outputs(store, executions, nodes)

    def output(node: str, key: str) -> mlmd.Artifact | None:
        return outputs.get(node, {}).get(key)

    artifacts = {key: output(*described) for key, described in DESCRIBED.items()}
    blessing = output(EVALUATOR, "blessing")
    return Run(
        name=settings.get("name", ""),
        id=context.name,
        uris={key: artifact.uri for key, artifact in artifacts.items() if artifact},
        started=started,
        settings=settings,
        versions=json.loads(_text(context, VERSIONS) or "{}"),
        steps=[
            _step(nodes.get(execution.id, "?"), execution, started)
            for execution in executions
            if nodes.get(execution.id) != REPORT
        ],
        error=_text(context, ERROR),
        blessed=_int(blessing, BLESSED_PROPERTY) == 1 if blessing else None,
        baseline=_text(blessing, BASELINE_PROPERTY),
        pushed_to=destination(output(PUSHER, "pushed_model")),
        outcome=_outcome(context),
        outputs=outputs,
        code={
            nodes[execution.id]: code
            for execution in executions
            if (code := _text(execution, CODE_KEY)) and execution.id in nodes
        },
        input_fingerprint=_input_fingerprint(executions),
        span=_text(artifacts["rejected"], NEWEST_SPAN_PROPERTY),
    )


def _input_fingerprint(executions: Sequence[mlmd.Execution]) -> str:
    # Only ReviewExampleGen has this property.
    options = next(filter(None, (_text(each, OPTIONS_KEY) for each in executions)), "{}")
    return str(json.loads(options).get("input_fingerprint", ""))


def _outcome(context: mlmd.Context) -> Outcome | None:
    recorded = _text(context, OUTCOME)
    if not recorded:
        return None
    try:
        return Outcome.from_json(json.loads(recorded))
    except ValueError as error:
        raise InputError(
            f"paths.metadata: the outcome of the run {context.name} cannot be read ({error}); "
            "another version of this program recorded it: set paths.root to another folder"
        ) from None


def _step(name: str, execution: mlmd.Execution, run_started: float) -> Step:
    begun = execution.create_time_since_epoch / 1000
    ended = execution.last_update_time_since_epoch / 1000
    state = _STATES.get(execution.last_known_state, UNFINISHED)
    return Step(name, state, max(0.0, begun - run_started), max(0.0, ended - begun))


def _outputs(
    store: MetadataStore, executions: Sequence[mlmd.Execution], nodes: Mapping[int, str]
) -> dict[str, dict[str, mlmd.Artifact]]:
    # TFX records the outputs of an execution only after its success.
    events = store.get_events_by_execution_ids([execution.id for execution in executions])
    outputs = [event for event in events if event.type == mlmd.Event.OUTPUT]
    artifacts = store.get_artifacts_by_id([event.artifact_id for event in outputs])
    by_id = {artifact.id: artifact for artifact in artifacts}
    found: dict[str, dict[str, mlmd.Artifact]] = {}
    for event in outputs:
        # A full disk may have lost an artifact.
        if event.artifact_id not in by_id:
            continue
        of_node = found.setdefault(nodes.get(event.execution_id, "?"), {})
        of_node[event.path.steps[0].key] = by_id[event.artifact_id]
    return found


def _node_ids(store: MetadataStore) -> dict[int, str]:
    """Return id of an execution -> id of its node."""
    return {
        execution.id: context.name.rpartition(".")[2]
        for context in store.get_contexts_by_type(_NODE_TYPE)
        for execution in store.get_executions_by_context(context.id)
    }


def _text(item: Any, key: str) -> str:
    """Return a custom property of an artifact, an execution or a context; empty without it."""
    return (
        item.custom_properties[key].string_value if item and key in item.custom_properties else ""
    )


def _int(item: Any, key: str) -> int:
    return int(item.custom_properties[key].int_value) if item else 0
