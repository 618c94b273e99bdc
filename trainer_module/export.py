"""Export a SavedModel with preprocessing and model in one graph, and its signatures."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

from core import storage
from core.digests import GRAPH_DIGEST
from preprocessing import features
from preprocessing.labels import LABELS_FILE, THRESHOLD, Labels
from preprocessing.settings import Transform
from preprocessing.signatures import (
    CLASSIFY,
    PREDICT_NGRAMS,
    PREDICT_TEXT,
    SERVING_DEFAULT,
    TRANSFORM_FEATURES,
)
from trainer_module.models import Exported


def save(
    exported: Exported, transform_graph: str, folder: str, settings: Transform, labels: Labels
) -> None:
    """Write a SavedModel of the transform in `transform_graph` and of a model to `folder`.

    Its asset LABELS_FILE contains the classes. With more than two classes `probabilities`, float32
    [batch, classes], and the name `class`, string [batch], are in place of `probability`, which is
    that of the second class.

    Signatures (all inputs of shape [batch], except the ids of n-grams):
      serving_default: serialized tf.Examples -> probability float32, label int64, both [batch].
      predict_text: raw strings -> the same outputs.
      classify: serialized tf.Examples -> classes string, scores float32, both [batch, classes]. It
        is a classification signature, as the `:classify` of TensorFlow Serving requires.
      transform_features: serialized tf.Examples -> the transformed features, dense.
      predict_ngrams: ids of n-grams, int64 [n-grams of all reviews], and the number of n-grams of
        each review, int64 -> the same outputs as predict_text. Only a model whose only input is
        ragged n-grams has this signature. The variable `ngram_settings` of such a model contains
        the length of the longest n-gram, the number of buckets and the lengths of the openings; the
        variable `character_ngrams` contains the lengths of the n-grams of characters.

    Args:
      exported: the models, outside any strategy: transformed features -> logits, float32
        [batch, `labels.logits`].
      transform_graph: the folder of the Transform output.
      folder: the folder of the SavedModel, local or remote.
      settings: the settings of the features.
      labels: the classes.

    Raises:
      tensorflow.errors.OpError: a file cannot be read or written.
      OSError: the digest of the graph cannot be written.
    """
    transform = tft.TFTransformOutput(transform_graph).transform_features_layer()
    model = exported.served
    inputs = model.input
    served = tf.Module(name="reviews")
    # Attributes that are Keras objects would be exported with the state of the optimizer and a
    # second copy of every layer's computation, which Keras rewrites and traces for seconds.
    served.served_variables = model.variables
    # A warm start reads these, see `weights.warm_start`.
    served.model_variables = exported.base.variables
    served.labels = tf.saved_model.Asset(os.path.join(transform_graph, LABELS_FILE))
    served.transform_resources = tf.train.TrackableView.children(transform)

    def parse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return tf.io.parse_example(examples, features.raw_feature_spec())

    names = tf.constant(labels.names)

    def answer(values: dict[str, Any]) -> dict[str, tf.Tensor]:
        logits = model(values, training=False)
        if labels.is_binary:
            probability = tf.sigmoid(tf.squeeze(logits, axis=1))
            label = tf.cast(probability > THRESHOLD, tf.int64)
            return {"probability": probability, "label": label}
        probabilities = tf.nn.softmax(logits)
        # As `Labels.decide`: of different logits with equal probabilities, the first one wins.
        label = tf.argmax(probabilities, axis=1)
        return {
            "probabilities": probabilities,
            "label": label,
            "class": tf.gather(names, label),
        }

    def predict(raw: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        transformed = transform(raw)
        return answer({name: _model_input(transformed[name], inputs[name]) for name in inputs})

    by_example = _signature(lambda each: predict(parse(each)), examples=tf.string)

    def classify(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        # The call of a traced function, because a second trace of the model would take seconds.
        scores = by_example(examples)[labels.scores_name]
        if labels.is_binary:
            scores = tf.stack([1 - scores, scores], axis=1)
        return {"classes": tf.tile(names[tf.newaxis], [tf.shape(scores)[0], 1]), "scores": scores}

    def transform_features(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        # In order of their names, because the order of the layer is another one in each process.
        transformed = sorted(transform(parse(examples)).items())
        return {name: _dense(value, -1) for name, value in transformed}

    def predict_ngrams(ngrams: tf.Tensor, row_lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.RaggedTensor.from_row_lengths(ngrams, row_lengths, validate=False)
        return answer({features.NGRAMS: rows})

    signatures = {
        SERVING_DEFAULT: by_example,
        PREDICT_TEXT: _signature(
            lambda texts: predict(features.raw_features(texts)), texts=tf.string
        ),
        # TensorFlow Serving requires the name `inputs` here.
        CLASSIFY: _signature(classify, inputs=tf.string),
        TRANSFORM_FEATURES: _signature(transform_features, examples=tf.string),
    }
    if set(inputs) == {features.NGRAMS} and _is_ragged(inputs[features.NGRAMS]):
        served.ngram_settings = tf.Variable(
            [settings.ngrams, settings.ngram_buckets, *settings.openings],
            trainable=False,
            dtype=tf.int64,
        )
        served.character_ngrams = tf.Variable(
            settings.character_ngrams, trainable=False, dtype=tf.int64
        )
        signatures[PREDICT_NGRAMS] = _signature(
            predict_ngrams, ngrams=tf.int64, row_lengths=tf.int64
        )
    tf.saved_model.save(served, folder, signatures=signatures)
    # `tf.saved_model.save` gives every signature the method of predictions.
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(folder)
    updater.replace_method_name(CLASSIFY, tf.saved_model.CLASSIFY_METHOD_NAME, "serve")
    updater.save()
    _write_graph_digest(folder)


def _write_graph_digest(folder: str) -> None:
    """Write the digest of the graph that `serving.identity` reads.

    TensorFlow appends numbers to the names of functions, layers and operations, and orders them by
    these names. The digest is that of the definitions without such numbers.
    """
    saved = saved_model_pb2.SavedModel.FromString(
        storage.read(os.path.join(folder, tf.saved_model.SAVED_MODEL_FILENAME_PB))
    )
    digest = hashlib.sha256()
    for graph in saved.meta_graphs:
        definitions = list(map(_without_numbers, graph.graph_def.node))
        for function in graph.graph_def.library.function:
            nodes = sorted(map(_without_numbers, function.node_def))
            function.ClearField("node_def")
            definitions.append("".join([_without_numbers(function), *nodes]))
        digest.update("".join(sorted(definitions)).encode())
        for name in sorted(graph.signature_def):
            digest.update(f"{name} {_without_numbers(graph.signature_def[name])}".encode())
    path = os.path.join(folder, GRAPH_DIGEST)
    tf.io.gfile.makedirs(os.path.dirname(path))
    storage.write(path, digest.hexdigest().encode())


def _without_numbers(message: Any) -> str:
    # In names such as `add_1`, `embedding_lookup/13624` and `"13624"`, but not in values.
    return re.sub(r'(_+\d+)+|(?<=[/"])\d+', "", text_format.MessageToString(message))


def _signature(function: Callable[..., Any], **dtypes: tf.DType) -> Any:
    specs = [tf.TensorSpec([None], dtype, name=name) for name, dtype in dtypes.items()]
    return tf.function(function, autograph=False, input_signature=specs)


def _is_ragged(model_input: Any) -> bool:
    return isinstance(model_input.type_spec, tf.RaggedTensorSpec)


def _model_input(value: Any, model_input: Any) -> Any:
    """Convert a sparse feature, as TFT returns it, to the ragged or padded input of the model."""
    if isinstance(value, tf.SparseTensor) and _is_ragged(model_input):
        # The values of a row have no gaps, so `from_sparse`, which checks this for a tenth of the
        # time of a prediction, is not needed.
        return tf.RaggedTensor.from_value_rowids(
            value.values, value.indices[:, 0], value.dense_shape[0], validate=False
        )
    return _dense(value, features.PADDING_TOKEN)


def _dense(value: Any, padding: int) -> tf.Tensor:
    if isinstance(value, tf.SparseTensor):
        return tf.sparse.to_dense(value, default_value=tf.constant(padding, value.dtype))
    return value
