"""The one DAG, from raw texts to a pushed model, for every platform."""

from __future__ import annotations

import json
import time
from typing import Any

# Not tfx.v1: it takes ten seconds to import Google's cloud clients, which a local run never uses.
from tfx.components import ExampleValidator, Tuner
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2, transform_pb2
from tfx.types import BaseChannel

from components.data_gate import DataGate
from components.evaluator.component import Evaluator
from components.properties import CODE_KEY, RUN_PARAMETERS
from components.pusher import VersionPusher
from components.review_example_gen.component import ReviewExampleGen
from components.run_report.component import RunReport
from components.run_report.mlflow_connection import check_client
from components.run_report.tracking import COMMIT, PLATFORM, TrackingServer
from components.schema_gen import SCHEMA, SchemaGen
from components.serving_check.component import ServingCheck
from components.statistics_gen import StatisticsGen
from components.transform import SPAN_CACHE_KEY, ReviewTransform
from core.code_version import code_fingerprint, git, roots
from core.metadata import connection_config
from pipeline.chosen_model import model_file
from pipeline.config import (
    PipelineConfig,
    changed_settings,
    recorded_settings,
    unsent_folder,
)
from pipeline.destinations import destination_json
from pipeline.inputs import example_gen_options, has_spans, input_base, read_options, span_cache
from pipeline.named_classes import named_classes
from pipeline.nodes import PUSHER, SERVED_MODEL, TRAINER, TRANSFORM, TUNER, WARM_START
from pipeline.outputs import Outputs
from pipeline.platform import Platform
from pipeline.project import component_files
from pipeline.project_components import create_components
from pipeline.selected_nodes import in_order, node_ids
from preprocessing import features
from preprocessing.settings import Transform as TransformSettings
from preprocessing.settings import TransformConfig
from trainer_module import models
from trainer_module.settings import CustomConfig

_RUN_FN, _TUNER_FN = "trainer_module.run_fn.run_fn", "trainer_module.tuner.tuner_fn"


def create_pipeline(config: PipelineConfig, platform: Platform) -> Pipeline:
    """Return the pipeline of some settings for a platform.

    Args:
      config: the settings, which `platforms.checks.check_target` and `check_model` have
        checked.
      platform: the platform, created from the same settings.

    Raises:
      ConfigError: the file of `serving_check.golden` cannot be read, or has another form.
      CodeError: a file of the project has an error.
      InputError: a setting names a class that does not exist; or the platform computes the
        fingerprint of the input, and a file cannot be read.
      ValueError: the nodes that are built are not those of `pipeline.selected_nodes.node_ids`.
    """
    ids = node_ids(config)
    classes = read_options(config).classes
    golden = config.serving_check.parameters(classes)
    example_gen = ReviewExampleGen(
        platform.parameter("input_base", input_base(config)),
        platform.parameter("span", config.data.span),
        example_gen_options(config, platform.input_fingerprint),
    )
    examples = example_gen.outputs["examples"]
    schema_gen = SchemaGen(examples=examples, text=SCHEMA)
    schema = schema_gen.outputs["schema"]
    statistics_gen = StatisticsGen(
        examples=examples,
        # The schema declares the label as a category.
        schema=schema,
        max_examples=config.data.statistics_examples or 0,
    )
    validator = ExampleValidator(statistics=statistics_gen.outputs["statistics"], schema=schema)
    gate = DataGate(
        anomalies=validator.outputs["anomalies"],
        statistics=statistics_gen.outputs["statistics"],
        examples=examples,
        named_classes=json.dumps(named_classes(config, classes)),
    )
    transform = _transform(config, examples, schema)
    transform.add_upstream_node(gate)
    warm_start = platform.served_model(WARM_START) if WARM_START in ids else None
    training = _training_arguments(config, transform)
    tuner = Tuner(tuner_fn=_TUNER_FN, **training) if TUNER in ids else None
    trainer = platform.trainer(
        run_fn=_RUN_FN,
        epochs=platform.parameter("epochs", config.training.epochs),
        strategy=platform.parameter("strategy", config.training.strategy),
        base_model=warm_start.outputs["model"] if warm_start else None,
        hyperparameters=tuner.outputs["best_hyperparameters"] if tuner else None,
        **training,
    )
    served_model = platform.served_model(SERVED_MODEL, trainer.outputs["model"])
    evaluator = Evaluator(
        examples=examples,
        model=trainer.outputs["model"],
        baseline_model=served_model.outputs["model"],
        settings=config.evaluation,
        min_accuracy=platform.parameter("min_accuracy", config.evaluation.min_accuracy),
    )
    serving_check = ServingCheck(
        model=trainer.outputs["model"],
        examples=examples,
        evaluation=evaluator.outputs["evaluation"],
        **golden,
    )
    files = component_files(config.project)
    outputs = Outputs(
        examples=examples,
        rejected=example_gen.outputs["rejected"],
        schema=schema,
        statistics=statistics_gen.outputs["statistics"],
        anomalies=validator.outputs["anomalies"],
        transform_graph=transform.outputs["transform_graph"],
        transformed_examples=transform.outputs["transformed_examples"],
        model=trainer.outputs["model"],
        model_run=trainer.outputs["model_run"],
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        serving_blessing=serving_check.outputs["blessing"],
    )
    of_project = create_components(files, outputs)
    pusher = None
    if PUSHER in ids:
        pusher = VersionPusher(
            model=trainer.outputs["model"],
            model_blessing=evaluator.outputs["blessing"],
            infra_blessing=serving_check.outputs["blessing"],
            evaluation=evaluator.outputs["evaluation"],
            destination=destination_json(config),
            keep_reviews=int(config.push.keep_reviews),
        ).with_id(PUSHER)
        # A component of the project that fails prevents the push.
        pusher.add_upstream_nodes(of_project)
    report = RunReport(
        name=config.name,
        settings=recorded_settings(config),
        changed=json.dumps(changed_settings(recorded_settings(config))),
        rejected=example_gen.outputs["rejected"],
        statistics=statistics_gen.outputs["statistics"],
        anomalies=validator.outputs["anomalies"],
        examples=examples,
        model=trainer.outputs["model"],
        model_run=trainer.outputs["model_run"],
        evaluation=evaluator.outputs["evaluation"],
        blessing=evaluator.outputs["blessing"],
        check=serving_check.outputs["blessing"],
        trials=tuner.outputs["tuner_results"] if tuner else None,
        pushed_model=pusher.outputs["pushed_model"] if pusher else None,
        metadata=platform.metadata,
        created=repr(time.time()) if platform.metadata else None,
        **_run_parameters(config, platform),
    )
    built = [example_gen, schema_gen, warm_start, statistics_gen, validator, gate, transform, tuner]
    built += [trainer, served_model, evaluator, serving_check, *of_project, pusher, report]
    components = in_order(built, config)
    file_of = {file.name: file for file in files}
    if model := model_file(config):
        # The report compares these fingerprints with those of the served model.
        file_of |= {TRAINER: model, TUNER: model}
    for component in components:
        platform.configure(component)
        # A Resolver has no execution properties, and is never cached.
        if isinstance(component, BaseComponent):
            component.spec.exec_properties[CODE_KEY] = code_fingerprint(
                roots(component), file_of.get(component.id)
            )
    store = platform.metadata
    return Pipeline(
        pipeline_name=platform.name,
        pipeline_root=config.paths.root,
        components=components,
        enable_cache=config.cache,
        metadata_connection_config=store and connection_config(store),
    )


def make_tracking(config: PipelineConfig, platform: str) -> TrackingServer | None:
    """Return the tracking server of a run; None if the settings have none.

    Args:
      config: the settings of the run.
      platform: `local`, `kubeflow` or `vertex`, which becomes a tag of the run.

    Raises:
      ConfigError: `tracking.mlflow` is set, and the client of MLflow is not installed.
    """
    if config.tracking.mlflow is None:
        return None
    check_client()
    tags = {PLATFORM: platform, COMMIT: git("rev-parse", "HEAD")}
    return TrackingServer(config.tracking.mlflow, unsent_folder(config), config.name, tags)


def _run_parameters(config: PipelineConfig, platform: Platform) -> dict[str, RuntimeParameter]:
    """Return the parameters of a run that replace settings of the compiled pipeline."""
    settings = config.model_dump()
    settings["data"]["input_base"] = input_base(config)
    values = {
        name: platform.parameter(name, settings[section][name])
        for name, section in RUN_PARAMETERS.items()
    }
    return {name: value for name, value in values.items() if isinstance(value, RuntimeParameter)}


def _transform(
    config: PipelineConfig, examples: BaseChannel, schema: BaseChannel
) -> ReviewTransform:
    transform = ReviewTransform(
        examples=examples,
        schema=schema,
        preprocessing_fn="preprocessing.transform.preprocessing_fn",
        splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=["train", "eval"]),
        custom_config=TransformConfig(_features(config), _transform_settings(config)).to_dict(),
        # StatisticsGen and DataGate have checked the data already.
        disable_statistics=True,
        disable_analyzer_cache=True,
    )
    # Not a part of the custom config, which decides the content.
    transform.spec.exec_properties[SPAN_CACHE_KEY] = span_cache(config, TRANSFORM)
    return transform.with_id(TRANSFORM)


def _training_arguments(config: PipelineConfig, transform: ReviewTransform) -> dict[str, Any]:
    return {
        "examples": transform.outputs["transformed_examples"],
        "transform_graph": transform.outputs["transform_graph"],
        "train_args": trainer_pb2.TrainArgs(splits=["train"]),
        "eval_args": trainer_pb2.EvalArgs(splits=["eval"]),
        "custom_config": CustomConfig(
            training=config.training,
            # Batches of static shapes have room for the n-grams of so many words.
            transform=_transform_settings(config, "max_tokens"),
            code=code_fingerprint([_RUN_FN]),
            checkpoints=config.paths.checkpoints,
            model_file=model_file(config),
            has_spans=has_spans(config),
            splits={str(split): glob for split, glob in config.data.splits.items()},
            split_fractions=config.data.split_fractions,
        ).to_dict(),
    }


def _transform_settings(config: PipelineConfig, *further: str) -> TransformSettings:
    """Return the settings on which the features of the model depend, and `further` ones.

    The others must not cause a cache miss.
    """
    settings = config.transform.model_dump()
    keys = {key for name in _features(config) for key in features.SETTINGS[name]}
    return TransformSettings(**{key: settings[key] for key in keys.union(further)})


def _features(config: PipelineConfig) -> tuple[str, ...]:
    """Return the names of the features that the model reads."""
    return tuple(models.load(config.training.model, model_file(config)).FEATURES)
