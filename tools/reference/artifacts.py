"""The page of the artifacts, from the components of the pipeline."""

from __future__ import annotations

from typing import Any

from tools.reference.declared import NOTICE, about, cell

_ARTIFACTS = """\
# Artifacts

The components of the pipeline in the order in which the local engine runs them, with their inputs
and outputs. An artifact lies in `paths.root/COMPONENT/OUTPUT/EXECUTION`, where `EXECUTION` is a
number that ML Metadata assigns. `WarmStartModel` and `Tuner` exist only with `training.warm_start`
and `training.tuner_trials`. [Move to Kubeflow](../how-to/kubeflow.md#compile) lists what differs on
a cluster.
"""


_CONTENT = {
    "ExampleAnomalies": "`SchemaDiff.pb` for each split: the anomalies that were found.",
    "Examples": "Gzipped TFRecords of `tf.train.Example`, a folder `Split-NAME` for each split. "
    "Those of Transform also have `example_counts.json` and, if the model reads n-grams, "
    "`ngram_counts.npz`.",
    "ExampleStatistics": "`FeatureStats.pb` for each split.",
    "HyperParameters": "`best_hyperparameters.txt`, the best trial as JSON.",
    "InfraBlessing": "`check.json`, the results of [the serving check]"
    "(../explanation/components.md#the-serving-check).",
    "Model": "`Format-Serving`, the SavedModel with the signatures of [the model](model.md).",
    "ModelBlessing": "An empty file `BLESSED` or `NOT_BLESSED`.",
    "ModelEvaluation": "Metrics, validations and plots, for `tfma.load_eval_result`; "
    "`sampled_predictions.json` and `mistakes.json`, with texts of reviews.",
    "ModelRun": "`training.json`, TensorBoard logs, and `job.json` of a local cluster.",
    "PushedModel": "A copy of the SavedModel in `paths.serving`.",
    "Schema": "`schema.pbtxt`.",
    "TransformGraph": "The `preprocessing_fn` as a TensorFlow graph, with its vocabulary.",
    "TunerResults": "`tuner_results.json`, the score of every trial.",
}
"""Artifact type of TFX -> its content. The types of this project have docstrings."""


def artifacts_page() -> str:
    """Return the page of the components' inputs and outputs; imports TFX."""
    from pipeline.config import load_config
    from pipeline.pipeline import create_pipeline
    from platforms.local.platform import Local

    # A pipeline that has every component.
    config = load_config("sample", ["training.warm_start=true", "training.tuner_trials=1"], {})
    nodes = create_pipeline(config, Local(config)).components
    used = {item.type for node in nodes for item in node.outputs.values()}
    tables = "".join(_component(node) for node in nodes)
    kinds = "".join(f"| `{kind.__name__}` | {_content(kind)} |\n" for kind in _sorted(used))
    head = "| artifact type | content |\n|---|---|\n"
    return f"{NOTICE}{_ARTIFACTS}\n{tables}## Artifact types\n\n{head}{kinds}"


def _sorted(kinds: set[type]) -> list[type]:
    return sorted(kinds, key=lambda kind: kind.__name__)


def _component(node: Any) -> str:
    rows = [f"| input | `{key}` | {_channel(item)} |\n" for key, item in node.inputs.items()]
    rows += [f"| output | `{key}` | {_channel(item)} |\n" for key, item in node.outputs.items()]
    kind = type(node)
    text = f": {about(kind)}" if kind.__module__.startswith("components.") else ""
    return (
        f"## `{node.id}`\n\n`{kind.__module__}.{kind.__name__}`{text}\n\n"
        f"| | key | artifact type |\n|---|---|---|\n{''.join(rows)}\n"
    )


def _channel(channel: Any) -> str:
    return f"`{channel.type.__name__}`"


def _content(kind: type) -> str:
    return _CONTENT.get(kind.__name__) or cell(kind.__doc__ or "")
