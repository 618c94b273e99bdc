"""The pushed SavedModel: its signatures, and the ways to predict with it."""

import glob
import re
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from preprocessing import features
from tests.checkout import CHECKOUT
from tests.e2e.everyday import SENTENCES
from tests.examples import example

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks, pytest.mark.xdist_group("finished")]


@pytest.fixture(scope="module")
def pushed(first_run):
    workspace, *_ = first_run
    return tf.saved_model.load(str(workspace.pushed()[0]))


def _examples(workspace, component, split):
    """Return the serialized Examples that a component wrote."""
    uris = [a.uri for a in workspace.store().get_artifacts_by_type("Examples")]
    [uri] = [uri for uri in uris if component in uri]
    files = glob.glob(f"{uri}/Split-{split}/*")
    return [record.numpy() for record in tf.data.TFRecordDataset(files, "GZIP")]


def test_examples_need_no_label_and_get_the_answer_of_their_text(pushed):
    texts = [b"Great: loved it", b"Broke after a day"]
    unlabelled = tf.constant([example(text=text) for text in texts])
    by_example = pushed.signatures["serving_default"](examples=unlabelled)
    by_text = pushed.signatures["predict_text"](texts=tf.constant(texts))
    np.testing.assert_array_equal(by_text["probability"], by_example["probability"])
    np.testing.assert_array_equal(by_text["label"], by_example["label"])
    assert by_text["probability"].dtype == tf.float32
    assert by_text["label"].dtype == tf.int64
    assert by_text["probability"].shape == by_text["label"].shape == (2,)


def test_transform_features_returns_the_features_of_the_training(finished, pushed):
    workspace, _ = finished
    written = Counter()
    for one in _examples(workspace, "Transform", "eval"):
        feature = tf.train.Example.FromString(one).features.feature
        [bucket] = feature[features.LENGTH_BUCKET].bytes_list.value
        written[bucket, tuple(feature[features.NGRAMS].int64_list.value)] += 1
    raw = _examples(workspace, "ReviewExampleGen", "eval")
    answer = pushed.signatures["transform_features"](examples=tf.constant(raw))
    assert set(answer) == {features.LENGTH_BUCKET, features.NGRAMS}
    buckets, ngrams = (answer[name].numpy() for name in (features.LENGTH_BUCKET, features.NGRAMS))
    rows = zip(buckets.ravel(), ngrams, strict=True)
    answered = Counter((bucket, tuple(row[row >= 0])) for bucket, row in rows)
    assert answered == written


def answers(done):
    """Return (label, probability, text) of each line."""
    assert done.returncode == 0, done.stderr
    # On a busy machine there is time for a line of progress.
    assert re.sub(r".* reviews, \d+%\n", "", done.stderr) == ""
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [(label, float(probability), text) for label, probability, text in lines]


def is_sure(probability):
    return 0 <= probability < 0.3 or 0.7 < probability <= 1


def test_the_examples_of_the_readme_are_answered_right_and_with_confidence(finished):
    workspace, _ = finished
    [command] = re.findall(
        r'^amazon-reviews predict (".+)$', (CHECKOUT / "README.md").read_text("utf-8"), re.M
    )
    texts = re.findall(r'"([^"]+)"', command)
    found = answers(workspace.command("predict", *texts))
    assert [(label, text) for label, _, text in found] == [
        ("negative", texts[0]),
        ("positive", texts[1]),
    ]
    assert all(is_sure(probability) for _, probability, _ in found)


def test_most_everyday_sentences_on_standard_input_are_classified_right(finished):
    workspace, _ = finished
    stdin = "\n\n".join(text for _, text in SENTENCES)
    found = answers(workspace.command("predict", stdin=stdin))
    assert [text for *_, text in found] == [text for _, text in SENTENCES]
    right = [
        is_sure(probability)
        for (expected, _), (label, probability, _) in zip(SENTENCES, found, strict=True)
        if label == expected
    ]
    assert len(SENTENCES) >= 120
    assert len(right) >= 0.92 * len(SENTENCES), found
    assert sum(right) >= 0.8 * len(SENTENCES), found
