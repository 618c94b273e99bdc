"""The only DAG: raw reviews to a pushed model, for every engine."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow_data_validation as tfdv

# Not tfx.v1: its import pulls in Google's cloud clients, ten seconds that a local run never needs.
from tfx.components import ExampleValidator, Tuner
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import trainer_pb2, transform_pb2
from tfx.types import BaseChannel

from components.data_gate.component import DataGate
from components.evaluator.component import Evaluator
from components.review_example_gen.component import ReviewExampleGen
from components.schema.component import ReviewSchemaGen
from components.statistics.component import StatisticsGen
from components.trainer.component import Trainer
from components.transform.component import Transform
from pipeline.beam import beam_args
from pipeline.code_version import add_code, fingerprint
from pipeline.config import PipelineConfig
from pipeline.evaluation import eval_config
from pipeline.inputs import input_files, read_options
from pipeline.nodes import PUSHER, TUNER, WARM_START, node_ids
from pipeline.target_checks import Target
from pipeline.targets import Local, make_target
from preprocessing import features
from trainer_module import models

_RUN_FN = "trainer_module.run_fn.run_fn"


def create_pipeline(config: PipelineConfig, target: Target = "local") -> Pipeline:
    """The pipeline that `config` describes, for the engine called `target`.

    Raises:
      ConfigError: `paths.metadata` is not usable.
    """
    ids = node_ids(config)
    engine = make_target(config, target)
    example_gen = _example_gen(config, engine)
    examples = example_gen.outputs["examples"]
    schema_gen = ReviewSchemaGen()
    schema = schema_gen.outputs["schema"]
    statistics_gen = StatisticsGen(
        examples=examples,
        # With the schema, so that the label is counted as the category that it is.
        schema=schema,
        # Title and body would be the text a second time, at the price of the first.
        stats_options=tfdv.StatsOptions(feature_allowlist=[features.TEXT, features.LABEL]),
        max_examples=config.data.statistics_examples,
    )
    validator = ExampleValidator(statistics=statistics_gen.outputs["statistics"], schema=schema)
    gate = DataGate(anomalies=validator.outputs["anomalies"])
    transform = _transform(config, examples, schema)
    transform.add_upstream_node(gate)
    warm_start = engine.warm_start() if WARM_START in ids else None
    tuner = _tuner(config, transform) if TUNER in ids else None
    trainer = _trainer(config, engine, transform, warm_start, tuner)
    baseline = engine.baseline(trainer.outputs["model"])
    evaluator = Evaluator(
        examples=examples,
        example_splits=["test"],
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        eval_config=eval_config(config),
        min_accuracy=engine.parameter("min_accuracy", config.evaluation.min_accuracy),
    )
    pusher = (
        engine.pusher(trainer.outputs["model"], evaluator.outputs["blessing"])
        if PUSHER in ids
        else None
    )
    nodes: dict[str, BaseNode] = {
        node.id: node
        for node in (
            example_gen,
            schema_gen,
            statistics_gen,
            validator,
            gate,
            transform,
            warm_start,
            tuner,
            trainer,
            baseline,
            evaluator,
            pusher,
        )
        if node is not None
    }
    components = [nodes[name] for name in ids]
    for component in components:
        engine.place(component)
        add_code(component)
    return Pipeline(
        pipeline_name=engine.name,
        pipeline_root=config.paths.root,
        components=components,
        enable_cache=config.cache,
        metadata_connection_config=engine.metadata,
        beam_pipeline_args=beam_args(config),
    )


def _example_gen(config: PipelineConfig, engine: Local) -> ReviewExampleGen:
    return ReviewExampleGen(
        input_base=engine.input_base,
        patterns=input_files(config)[1],
        read_options=dataclasses.asdict(read_options(config)),
        max_examples={str(split): n for split, n in config.data.max_examples.items()},
        max_rejected_fraction=config.data.max_rejected_fraction,
    )


def _transform(config: PipelineConfig, examples: BaseChannel, schema: BaseChannel) -> Transform:
    return Transform(
        examples=examples,
        schema=schema,
        preprocessing_fn="preprocessing.transform.preprocessing_fn",
        splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=["train", "eval"]),
        custom_config=_transform_settings(config)
        | {"features": list(models.load(config.training.model).FEATURES)},
    )


def _tuner(config: PipelineConfig, transform: Transform) -> Tuner:
    """Looks for the best hyperparameters."""
    return Tuner(tuner_fn="trainer_module.tuner.tuner_fn", **_training_arguments(config, transform))


def _trainer(
    config: PipelineConfig,
    engine: Local,
    transform: Transform,
    warm_start: BaseNode | None,
    tuner: Tuner | None,
) -> Trainer:
    return engine.trainer(
        run_fn=_RUN_FN,
        epochs=engine.parameter("epochs", config.training.epochs),
        strategy=engine.parameter("strategy", config.training.strategy),
        base_model=warm_start.outputs["model"] if warm_start else None,
        hyperparameters=tuner.outputs["best_hyperparameters"] if tuner else None,
        **_training_arguments(config, transform),
    )


def _training_arguments(config: PipelineConfig, transform: Transform) -> dict[str, Any]:
    return {
        "examples": transform.outputs["transformed_examples"],
        "transform_graph": transform.outputs["transform_graph"],
        "train_args": trainer_pb2.TrainArgs(splits=["train"]),
        "eval_args": trainer_pb2.EvalArgs(splits=["eval"]),
        "custom_config": {
            "training": config.training.model_dump(),
            "transform": _transform_settings(config),
            # Checkpoints of other code are not continued.
            "code": fingerprint([_RUN_FN]),
            "checkpoints": config.paths.checkpoints,
        },
    }


def _transform_settings(config: PipelineConfig) -> dict[str, Any]:
    """Only what the chosen model depends on, so that no other setting makes anything run again."""
    settings = config.transform.model_dump()
    names = models.load(config.training.model).FEATURES
    return {key: settings[key] for name in names for key in features.SETTINGS[name]}
