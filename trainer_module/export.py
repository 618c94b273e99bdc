"""Export a SavedModel with preprocessing and model in one graph, and its signatures."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from preprocessing import features
from preprocessing.settings import Transform


def _signature(**dtypes: tf.DType) -> Any:
    specs = [tf.TensorSpec([None], dtype, name=name) for name, dtype in dtypes.items()]
    return tf.function(autograph=False, input_signature=specs)


class ServedModel(tf.Module):
    """A trained model for raw reviews.

    Signatures (all inputs of shape [batch]):
      serving_default: serialized tf.Examples -> probability float32, label int64, both [batch].
      predict_text: raw strings -> probability float32, label int64, both [batch].
      transform_features: serialized tf.Examples -> the transformed features, dense.
    """

    def __init__(self, model: tf_keras.Model, transform_graph: str):
        super().__init__(name="reviews")
        # Attributes that are Keras objects would be exported with the state of the optimizer and a
        # second copy of every layer's computation, which Keras rewrites and traces for seconds.
        self.model_variables = model.variables
        self._inputs = lambda: model.input
        self._logit = lambda inputs: model(inputs, training=False)
        graph = tft.TFTransformOutput(transform_graph)
        transform = graph.transform_features_layer()
        self.transform_resources = tf.train.TrackableView.children(transform)
        self._transform = lambda raw: transform(raw)

    def _predict(self, raw: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        transformed = self._transform(raw)
        inputs = {
            name: _as_model_input(transformed[name], spec) for name, spec in self._inputs().items()
        }
        return self._answer(inputs)

    def _answer(self, inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
        probability = tf.sigmoid(tf.squeeze(self._logit(inputs), axis=1))
        return {
            "probability": probability,
            "label": tf.cast(probability > features.THRESHOLD, tf.int64),
        }

    @_signature(examples=tf.string)
    def serving_default(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._predict(tf.io.parse_example(examples, features.raw_feature_spec()))

    @_signature(texts=tf.string)
    def predict_text(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._predict(features.raw_features(texts))

    @_signature(examples=tf.string)
    def transform_features(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        raw = tf.io.parse_example(examples, features.raw_feature_spec())
        return {name: _dense(value) for name, value in self._transform(raw).items()}


class ServedNgramModel(ServedModel):
    """A trained model whose only input is n-grams, with a signature for precomputed n-gram ids.

    `predict_ngrams`: ids of n-grams, int64 [n-grams of all reviews], and the number of n-grams of
    each review, int64 [batch] -> probability float32, label int64, both [batch]. `ngram_settings`
    has the longest n-gram, the number of buckets and the lengths of the openings.
    """

    def __init__(self, model: tf_keras.Model, transform_graph: str, settings: Transform):
        super().__init__(model, transform_graph)
        self.ngram_settings = tf.Variable(
            [settings.ngrams, settings.ngram_buckets, *settings.openings],
            trainable=False,
            dtype=tf.int64,
        )

    @_signature(ngrams=tf.int64, row_lengths=tf.int64)
    def predict_ngrams(self, ngrams: tf.Tensor, row_lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.RaggedTensor.from_row_lengths(ngrams, row_lengths, validate=False)
        return self._answer({features.NGRAMS: rows})


def save(model: tf_keras.Model, transform_graph: str, folder: str, settings: Transform) -> None:
    """Write a SavedModel of the transform in `transform_graph` and of `model` to `folder`."""
    # Two classes, because TensorFlow traces every function of the object that it saves.
    served = (
        ServedNgramModel(model, transform_graph, settings)
        if _reads_only_ngrams(model)
        else ServedModel(model, transform_graph)
    )
    names = ("serving_default", "predict_text", "transform_features", "predict_ngrams")
    signatures = {name: getattr(served, name) for name in names if hasattr(served, name)}
    tf.saved_model.save(served, folder, signatures=signatures)


def _reads_only_ngrams(model: tf_keras.Model) -> bool:
    """Return whether ragged n-grams are the only input of the model."""
    inputs = model.input
    return set(inputs) == {features.NGRAMS} and isinstance(
        inputs[features.NGRAMS].type_spec, tf.RaggedTensorSpec
    )


def _as_model_input(value: Any, spec: Any) -> Any:
    """Convert a sparse feature, as TFT returns it, to the ragged or padded input of the model."""
    if not isinstance(value, tf.SparseTensor):
        return value
    if isinstance(spec.type_spec, tf.RaggedTensorSpec):
        return tf.RaggedTensor.from_sparse(value)
    return tf.sparse.to_dense(value, default_value=features.PADDING_TOKEN)


def _dense(value: Any) -> tf.Tensor:
    if isinstance(value, tf.SparseTensor):
        return tf.sparse.to_dense(value, default_value=tf.constant(-1, value.dtype))
    return value
