"""The only DAG: raw reviews to a pushed model, for every engine."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow_data_validation as tfdv

# Not tfx.v1: its import pulls in Google's cloud clients, ten seconds that a local run never needs.
from tfx.components import (
    Evaluator,
    ExampleValidator,
    Pusher,
    StatisticsGen,
    Trainer,
    Transform,
    Tuner,
)
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2, trainer_pb2, transform_pb2
from tfx.types import BaseChannel, Channel, standard_artifacts

import preprocessing
import trainer_module
from components.baseline.strategy import CANDIDATE_KEY, LatestBlessedBaseline
from components.data_gate.component import DataGate
from components.review_example_gen.component import ReviewExampleGen
from pipeline.beam import beam_args
from pipeline.config import PipelineConfig
from pipeline.evaluation import eval_config
from pipeline.inputs import input_files, read_options
from pipeline.metadata import connection_config
from preprocessing import features
from trainer_module import models

SCHEMA_FILE = str(Path(preprocessing.__file__).parent / "schema" / "schema.pbtxt")


def create_pipeline(config: PipelineConfig) -> Pipeline:
    """The pipeline that `config` describes.

    Raises:
      ConfigError: `paths.metadata` is not usable.
    """
    example_gen = _example_gen(config)
    examples = example_gen.outputs["examples"]
    schema_gen = ImportSchemaGen(schema_file=SCHEMA_FILE)
    statistics_gen = StatisticsGen(
        examples=examples,
        # With the schema, so that the label is counted as the category that it is.
        schema=schema_gen.outputs["schema"],
        # Title and body would be the text a second time, at the price of the first.
        stats_options=tfdv.StatsOptions(feature_allowlist=[features.TEXT, features.LABEL]),
    )
    validator = ExampleValidator(
        statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"]
    )
    gate = DataGate(anomalies=validator.outputs["anomalies"])
    transform = _transform(config, examples, schema_gen.outputs["schema"])
    transform.add_upstream_node(gate)
    warm_start = _warm_start(config)
    tuner = _tuner(config, transform)
    trainer = _trainer(config, transform, warm_start, tuner)
    baseline = Resolver(
        strategy_class=LatestBlessedBaseline,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        **{CANDIDATE_KEY: trainer.outputs["model"]},
    ).with_id("LatestBlessedModel")
    evaluator = Evaluator(
        examples=examples,
        example_splits=["test"],
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        eval_config=eval_config(config),
    )
    components: list[BaseNode] = [
        example_gen,
        schema_gen,
        statistics_gen,
        validator,
        gate,
        transform,
        *([warm_start] if warm_start else []),
        *([tuner] if tuner else []),
        trainer,
        baseline,
        evaluator,
    ]
    if config.push.destination == "filesystem":
        components.append(
            Pusher(
                model=trainer.outputs["model"],
                model_blessing=evaluator.outputs["blessing"],
                push_destination=pusher_pb2.PushDestination(
                    filesystem=pusher_pb2.PushDestination.Filesystem(
                        base_directory=config.paths.serving
                    )
                ),
            )
        )
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=config.paths.root,
        components=components,
        enable_cache=config.cache,
        metadata_connection_config=connection_config(config.paths.metadata),
        beam_pipeline_args=beam_args(config),
    )


def _example_gen(config: PipelineConfig) -> ReviewExampleGen:
    base, patterns = input_files(config)
    return ReviewExampleGen(
        input_base=base,
        patterns=patterns,
        read_options=dataclasses.asdict(read_options(config)),
        code=code_fingerprint(preprocessing),
        max_examples={str(split): n for split, n in config.data.max_examples.items()},
        max_rejected_fraction=config.data.max_rejected_fraction,
    )


def _transform(config: PipelineConfig, examples: BaseChannel, schema: BaseChannel) -> Transform:
    return Transform(
        examples=examples,
        schema=schema,
        preprocessing_fn="preprocessing.transform.preprocessing_fn",
        splits_config=transform_pb2.SplitsConfig(analyze=["train"], transform=["train", "eval"]),
        disable_statistics=True,
        custom_config=_transform_settings(config)
        | {
            "features": list(models.load(config.training.model).FEATURES),
            "code": code_fingerprint(preprocessing),
        },
    )


def _warm_start(config: PipelineConfig) -> Resolver | None:
    """Finds the latest blessed model for the trainer to start from, if it is to."""
    if not config.training.warm_start:
        return None
    return Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("WarmStartModel")


def _tuner(config: PipelineConfig, transform: Transform) -> Tuner | None:
    """Looks for the best hyperparameters, if it is to."""
    if config.training.tuner_trials is None:
        return None
    return Tuner(tuner_fn="trainer_module.tuner.tuner_fn", **_training_arguments(config, transform))


def _trainer(
    config: PipelineConfig, transform: Transform, warm_start: Resolver | None, tuner: Tuner | None
) -> Trainer:
    return Trainer(
        run_fn="trainer_module.run_fn.run_fn",
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
            "code": code_fingerprint(trainer_module),
            "checkpoints": os.path.join(config.paths.root, "checkpoints"),
        },
    }


def _transform_settings(config: PipelineConfig) -> dict[str, Any]:
    """Only what the chosen model depends on, so that no other setting makes anything run again."""
    settings = config.transform.model_dump()
    names = models.load(config.training.model).FEATURES
    return {key: settings[key] for name in names for key in features.SETTINGS[name]}


def code_fingerprint(package: ModuleType) -> str:
    """A hash of a package's sources: functions named by dotted path are otherwise no part of the
    cache key, and a changed `preprocessing_fn` would be answered with old outputs."""
    digest = hashlib.sha256()
    root = Path(next(iter(package.__path__)))
    for source in sorted(root.rglob("*.py")):
        digest.update(f"{source.relative_to(root)}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]
