"""The scores of an answer for two and for more classes."""

import numpy as np
import pytest

from core.digests import DIGESTS, to_text
from core.errors import InputError
from preprocessing.labels import (
    LABELS_FILE,
    SENTIMENT,
    Labels,
    model_labels,
    read_labels,
    write_labels,
)

TWO = np.array([0.25, 0.75], np.float32)
MORE = np.array([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], np.float32)
TOPICS = Labels(("billing", "delivery", "other"))


@pytest.mark.parametrize(
    ("labels", "scores", "shown", "by_class"),
    [
        (SENTIMENT, TWO, [0.25, 0.75], [[0.75, 0.25], [0.25, 0.75]]),
        (TOPICS, MORE, [0.5, 0.625], MORE.tolist()),
    ],
    ids=["two", "more"],
)
def test_the_probabilities_of_answers(labels, scores, shown, by_class):
    answers = labels.decide(scores)
    assert labels.shown(scores, answers).tolist() == shown
    assert labels.by_class(scores).tolist() == by_class
    assert scores[0].shape == labels.scores_shape
    assert labels.of_label(scores, answers).tolist() == [max(row) for row in by_class]


def test_one_answer_is_explained_by_its_probability_in_each_variant():
    assert TOPICS.shown(MORE, 2).tolist() == [0.25, 0.625]
    assert SENTIMENT.shown(TWO, 0).tolist() == TWO.tolist()


def test_a_damaged_file_of_a_model_is_not_to_be_deleted(tmp_path):
    # Without the file the classes would be those of sentiment.
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / LABELS_FILE).write_text('{"names": ["one"]')
    with pytest.raises(InputError, match=r"damaged \(.*\); push the model again, or remove this"):
        model_labels(str(tmp_path))
    with pytest.raises(InputError, match=r"damaged \(.*\); run once with --set cache=false to"):
        read_labels(str(assets))


def test_a_model_without_its_classes_is_of_sentiment_unless_it_was_pushed_with_a_file(tmp_path):
    assert model_labels(str(tmp_path)) == SENTIMENT
    (tmp_path / DIGESTS).parent.mkdir()
    (tmp_path / DIGESTS).write_text(to_text({"saved_model.pb": "0", f"assets/{LABELS_FILE}": "1"}))
    with pytest.raises(InputError, match=r"assets/labels.json is missing; push the model again"):
        model_labels(str(tmp_path))


def test_a_file_has_the_scale_of_the_labels_only_if_it_is_known(tmp_path):
    write_labels(str(tmp_path), SENTIMENT)
    assert "label_scale" not in (tmp_path / LABELS_FILE).read_text()
    assert read_labels(str(tmp_path)).label_scale == ""
    write_labels(str(tmp_path), Labels(SENTIMENT.names, label_scale="1 to 5"))
    found = read_labels(str(tmp_path))
    assert (found, found.label_scale) == (SENTIMENT, "1 to 5")


def test_a_file_has_the_columns_of_the_training_only_if_the_labels_decide_them(tmp_path):
    write_labels(str(tmp_path), SENTIMENT)
    assert "columns" not in (tmp_path / LABELS_FILE).read_text()
    labels = Labels(SENTIMENT.names, columns=(("", "text"), ("summary", "größe")))
    write_labels(str(tmp_path), labels)
    assert read_labels(str(tmp_path)).columns == labels.columns
