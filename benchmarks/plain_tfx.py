"""The peer of our pipeline: a TFX pipeline for the same reviews, in the style of TFX's tutorials.

It has a stock FileBasedExampleGen with a per-line parser, the default StatisticsGen, an inferred
schema, Transform with a 50,000-word unigram vocabulary, a Keras model, and an Evaluator.
`benchmarks/pipeline.py` runs this file as a script. The script reads the environment variables
`PLAIN_INPUT` (a folder of fastText files) and `PLAIN_ROOT`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import apache_beam as beam
import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
import tf_keras
from absl import logging
from tfx import v1 as tfx
from tfx.components.example_gen.base_example_gen_executor import (
    BaseExampleGenExecutor,
)
from tfx.components.example_gen.component import FileBasedExampleGen
from tfx.dsl.components.base import executor_spec

from platforms.local import events

VOCABULARY = 50_000
# The runner is the same as ours, because Beam's default runner downloads another one. With the name
# of an image TFX does not package its sources, which takes seconds for each component. No container
# is started.
BEAM_ARGS = ["--runner=FnApiRunner", "--sdk_container_image=none"]


def to_example(line: str) -> tf.train.Example:
    label, _, text = line.partition(" ")
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()])),
                "label": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[int(label == "__label__2")])
                ),
            }
        )
    )


@beam.ptransform_fn
@beam.typehints.with_input_types(beam.Pipeline)
@beam.typehints.with_output_types(tf.train.Example)
def lines_to_examples(
    pipeline: beam.Pipeline, exec_properties: dict[str, Any], split_pattern: str
) -> beam.PCollection:
    pattern = os.path.join(exec_properties["input_base"], split_pattern)
    return pipeline | beam.io.ReadFromText(pattern) | beam.Map(to_example)


class PlainExecutor(BaseExampleGenExecutor):
    def GetInputSourceToExamplePTransform(self) -> beam.PTransform:
        return lines_to_examples


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, Any]:
    words = tf.strings.split(tf.strings.lower(tf.reshape(inputs["text"], [-1]))).to_sparse()
    ids = tft.compute_and_apply_vocabulary(words, top_k=VOCABULARY, num_oov_buckets=1)
    return {"words": ids, "label": inputs["label"]}


def run_fn(fn_args: Any) -> None:
    output = tft.TFTransformOutput(fn_args.transform_graph_path)
    spec = output.transformed_feature_spec()

    def dataset(patterns: list[str]) -> tf.data.Dataset:
        files = tf.data.Dataset.list_files(patterns)
        records = tf.data.TFRecordDataset(files, "GZIP").shuffle(10_000).batch(256)

        def parse(batch: tf.Tensor) -> Any:
            features = tf.io.parse_example(batch, spec)
            label = (
                tf.reshape(tf.sparse.to_dense(features["label"]), [-1, 1])
                if isinstance(features["label"], tf.SparseTensor)
                else features["label"]
            )
            return tf.sparse.to_dense(features["words"]) + 1, label

        return records.map(parse).prefetch(2)

    model = tf_keras.Sequential(
        [
            tf_keras.layers.Embedding(VOCABULARY + 2, 16, mask_zero=True),
            tf_keras.layers.GlobalAveragePooling1D(),
            tf_keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", ["accuracy"])
    model.fit(dataset(fn_args.train_files), verbose=2)
    model.tft_layer = output.transform_features_layer()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        spec = output.raw_feature_spec()
        spec.pop("label")
        words = model.tft_layer(tf.io.parse_example(examples, spec))["words"]
        return {"probability": model(tf.sparse.to_dense(words) + 1)}

    model.save(fn_args.serving_model_dir, signatures={"serving_default": serve})


def create_pipeline(input_base: str, root: str) -> tfx.dsl.Pipeline:
    example_gen = FileBasedExampleGen(
        input_base=input_base,
        custom_executor_spec=executor_spec.BeamExecutorSpec(PlainExecutor),
    )
    examples = example_gen.outputs["examples"]
    statistics = tfx.components.StatisticsGen(examples=examples)
    schema = tfx.components.SchemaGen(
        statistics=statistics.outputs["statistics"], infer_feature_shape=True
    )
    validator = tfx.components.ExampleValidator(
        statistics=statistics.outputs["statistics"], schema=schema.outputs["schema"]
    )
    transform = tfx.components.Transform(
        examples=examples,
        schema=schema.outputs["schema"],
        preprocessing_fn="benchmarks.plain_tfx.preprocessing_fn",
    )
    trainer = tfx.components.Trainer(
        run_fn="benchmarks.plain_tfx.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(),
        eval_args=tfx.proto.EvalArgs(),
    )
    evaluator = tfx.components.Evaluator(
        examples=examples,
        model=trainer.outputs["model"],
        eval_config=tfma.EvalConfig(
            model_specs=[tfma.ModelSpec(label_key="label", signature_name="serving_default")],
            slicing_specs=[tfma.SlicingSpec()],
            metrics_specs=[
                tfma.MetricsSpec(
                    metrics=[
                        tfma.MetricConfig(class_name="ExampleCount"),
                        tfma.MetricConfig(class_name="BinaryAccuracy"),
                        tfma.MetricConfig(class_name="AUC"),
                    ]
                )
            ],
        ),
    )
    return tfx.dsl.Pipeline(
        pipeline_name="plain",
        beam_pipeline_args=BEAM_ARGS,
        pipeline_root=root,
        components=[example_gen, statistics, schema, validator, transform, trainer, evaluator],
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            os.path.join(root, "metadata.sqlite")
        ),
    )


if __name__ == "__main__":
    logging.set_verbosity(logging.INFO)
    logging.get_absl_logger().addHandler(events.RunSender.attach())
    tfx.orchestration.LocalDagRunner().run(
        create_pipeline(os.environ["PLAIN_INPUT"], os.environ["PLAIN_ROOT"])
    )
