"""The exported model of two and of more classes: its signatures, names, and `:classify`."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow_serving.apis import classification_pb2

from core.digests import GRAPH_DIGEST
from preprocessing import features
from preprocessing.labels import Labels, model_labels
from preprocessing.settings import Transform
from preprocessing.signatures import CLASSIFY
from serving.identity import identity
from serving.predict_text import load_predict_text
from tests.examples import example
from tests.trainer_module.conftest import TOPIC_TEXTS, TOPICS, TRANSFORM, predict
from trainer_module import export
from trainer_module.models import Exported, bags, ngram_linear

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]


def signature_defs(folder):
    """Return the definitions that TensorFlow Serving reads."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.loader.load(session, ["serve"], str(folder / "model"))
        return loaded.signature_def


def serving_classify(folder, texts):
    """Return what TensorFlow Serving's `:classify` computes; its checks are those of classifier.cc.

    Returns:
      A ClassificationResult.
    """
    definition = signature_defs(folder)[CLASSIFY]
    assert definition.method_name == tf.saved_model.CLASSIFY_METHOD_NAME
    assert list(definition.inputs) == [tf.saved_model.CLASSIFY_INPUTS]
    assert definition.inputs[tf.saved_model.CLASSIFY_INPUTS].dtype == tf.string
    names = (tf.saved_model.CLASSIFY_OUTPUT_CLASSES, tf.saved_model.CLASSIFY_OUTPUT_SCORES)
    assert set(definition.outputs) == set(names)
    examples = [example(text=text) for text in texts]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.loader.load(session, ["serve"], str(folder / "model"))
        fed = {definition.inputs[tf.saved_model.CLASSIFY_INPUTS].name: examples}
        classes, scores = session.run([definition.outputs[name].name for name in names], fed)
    assert (classes.dtype, scores.dtype) == (object, np.float32)
    assert classes.shape == scores.shape == (len(texts), len(classes[0]))
    result = classification_pb2.ClassificationResult()
    for names_, row in zip(classes, scores, strict=True):
        found = result.classifications.add()
        for name, score in zip(names_, row, strict=True):
            found.classes.add(label=name.decode(), score=score)
    return result


def test_more_than_two_classes_have_probabilities_a_label_and_a_name(topics):
    found = predict(topics, TOPIC_TEXTS)
    assert {name: (value.dtype, value.shape) for name, value in found.items()} == {
        "probabilities": (tf.float32, (len(TOPIC_TEXTS), TOPICS.number)),
        "label": (tf.int64, (len(TOPIC_TEXTS),)),
        "class": (tf.string, (len(TOPIC_TEXTS),)),
    }
    probabilities, label = found["probabilities"].numpy(), found["label"].numpy()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(label, TOPICS.decide(probabilities))
    names = [name.decode() for name in found["class"].numpy()]
    assert names == [TOPICS.names[each] for each in label]
    assert names == list(TOPICS.names)  # the model has learned the words


def test_the_first_of_equal_probabilities_is_the_answer(topics, tmp_path):
    settings = Transform(**TRANSFORM)
    model = ngram_linear.build(ngram_linear.Hyperparameters(), settings, TOPICS)
    model.get_layer(bags.BAG).bias.assign([-9.0, 0.0, 1e-9, 0.0, -9.0])
    exported = Exported(served=model, base=model)
    export.save(exported, str(topics / "graph"), str(tmp_path / "model"), settings, TOPICS)
    found = predict(tmp_path, TOPIC_TEXTS)
    assert TOPICS.decide(found["probabilities"]).tolist() == found["label"].numpy().tolist()
    assert set(found["class"].numpy()) == {TOPICS.names[1].encode()}


def test_the_classes_are_readable_from_the_saved_model_alone(topics, trained, tmp_path):
    assert model_labels(str(topics / "model")) == TOPICS
    assert model_labels(str(trained / "model")) == Labels(("negative", "positive"))


def test_examples_and_ngrams_get_the_answer_of_their_texts(topics):
    by_text = predict(topics, TOPIC_TEXTS)
    loaded = tf.saved_model.load(str(topics / "model"))
    examples = tf.constant([example(text=text) for text in TOPIC_TEXTS])
    by_example = loaded.signatures["serving_default"](examples=examples)
    predict_text = load_predict_text(str(topics / "model"))
    assert predict_text.ngram_settings is not None  # compiled code computes the n-grams
    by_ngrams = predict_text([text.encode() for text in TOPIC_TEXTS])
    for found in (by_example, by_ngrams):
        for name, values in by_text.items():
            np.testing.assert_array_equal(values, found[name], name)


def test_the_features_are_those_of_any_model(topics, trained):
    raw = tf.constant([example(text=text) for text in TOPIC_TEXTS])
    one, two = (
        tf.saved_model.load(str(folder / "model")).signatures["transform_features"](examples=raw)
        for folder in (topics, trained)
    )
    np.testing.assert_array_equal(one[features.NGRAMS], two[features.NGRAMS])


def test_tensorflow_serving_classifies(topics):
    result = serving_classify(topics, TOPIC_TEXTS)
    probabilities = predict(topics, TOPIC_TEXTS)["probabilities"].numpy()
    assert [
        [(found.label, found.score) for found in row.classes] for row in result.classifications
    ] == [list(zip(TOPICS.names, row.tolist(), strict=True)) for row in probabilities]


def test_tensorflow_serving_classifies_two_classes(trained):
    result = serving_classify(trained, ["very good number3", "not good"])
    probability = predict(trained, ["very good number3", "not good"])["probability"].numpy()
    for row, positive in zip(result.classifications, probability.tolist(), strict=True):
        assert [found.label for found in row.classes] == ["negative", "positive"]
        assert [found.score for found in row.classes] == pytest.approx([1 - positive, positive])


def test_two_classes_keep_their_signatures(trained):
    definitions = signature_defs(trained)
    own = {name for name in definitions if not name.startswith("__")}
    assert own == {
        "serving_default",
        "predict_text",
        "predict_ngrams",
        "transform_features",
        "classify",
    }
    for name in ("serving_default", "predict_text", "predict_ngrams"):
        assert definitions[name].method_name == tf.saved_model.PREDICT_METHOD_NAME
        assert set(definitions[name].outputs) == {"probability", "label"}


def test_of_equal_probabilities_the_first_class_is_the_answer(prepared, tmp_path):
    tokens = tf_keras.Input([None], dtype=tf.int64, name=features.TOKENS)
    # As float32 the three probabilities are equal, the logits are not.
    logits = tf.tile(tf.constant([[0.0, 1e-9, 0.0]]), [tf.shape(tokens)[0], 1])
    model = tf_keras.Model({features.TOKENS: tokens}, logits)
    labels = Labels(("one", "two", "three"))
    settings = Transform(**TRANSFORM)
    exported = Exported(served=model, base=model)
    export.save(exported, str(prepared / "graph"), str(tmp_path / "model"), settings, labels)
    found = predict(tmp_path, ["good"])
    assert len(set(found["probabilities"].numpy()[0].tolist())) == 1
    assert (found["label"].numpy().tolist(), found["class"].numpy().tolist()) == ([0], [b"one"])


def test_the_same_model_has_the_same_identity_whatever_the_process_did_before(topics, tmp_path):
    settings = Transform(**TRANSFORM)

    def exported(name):
        model = ngram_linear.build(ngram_linear.Hyperparameters(), settings, TOPICS)
        model.get_layer(bags.BAG).bias.assign([1.0, 2.0, 3.0, 4.0, 5.0])
        folder = str(tmp_path / name)
        both = Exported(served=model, base=model)
        export.save(both, str(topics / "graph"), folder, settings, TOPICS)
        return folder

    first, again = exported("first"), exported("again")
    graphs = [Path(folder, "saved_model.pb").read_bytes() for folder in (first, again)]
    assert graphs[0] != graphs[1]
    assert identity(first) == identity(again)
    copy = shutil.copytree(first, tmp_path / "copy")
    assert identity(str(copy)) == identity(first)
    assert identity(str(topics / "model")) != identity(first)
    Path(again, GRAPH_DIGEST).write_text("of another graph")
    assert identity(first) != identity(again)
