"""The settings of a training that `data check` proposes for few texts."""

import shlex

import yaml

from pipeline.config import PipelineConfig, load_config
from pipeline.data_check.few_texts import few_texts
from pipeline.data_check.settings_file import as_options
from tests.pipeline.test_data_check import look, look_again, write


def texts(labels, number=300):
    """Return CSV lines with the labels in turn."""
    rows = (f"{labels[n % len(labels)]},a text with number {n}\n" for n in range(number))
    return f"label,text\n{''.join(rows)}"


def test_few_texts_of_two_classes_get_small_steps_and_parts_of_words(tmp_path):
    folder = write(tmp_path, a__csv=texts(["positive", "negative"]))
    check = look(folder)
    assert check.starts and check.problems == ()
    assert "the default training ends after 2 steps" in check.few_texts.message
    written = yaml.safe_load(check.settings)
    assert written["transform"] == {"character_ngrams": [2, 3, 4, 5]}
    assert written["training"]["batch_size_per_replica"] == 64
    # The defaults of the sample do not remain.
    assert written["training"]["learning_rate"] == 0.03
    assert "evaluation" not in written
    again = look_again(tmp_path, check)
    assert again.starts and again.few_texts is None


def test_the_options_and_the_file_are_the_same_settings(tmp_path):
    folder = write(tmp_path, a__csv=texts(["positive", "negative"]))
    check = look(folder)
    (tmp_path / "mine.yaml").write_text(check.settings)
    written = load_config(str(tmp_path / "mine.yaml"), environ={})
    words = shlex.split(as_options(check.few_texts.settings))
    assert words[::2] == ["--set", "--set"]
    given = load_config("sample", words[1::2], environ={})
    assert (given.transform, given.training) == (written.transform, written.training)


def test_few_texts_of_more_classes_get_the_settings_of_their_preset(tmp_path):
    for labels, task, preset in (
        (["red", "green", "blue"], "each", "topics"),
        (["1", "2", "3", "4", "5"], "stars", "stars"),
    ):
        folder = tmp_path / task
        folder.mkdir()
        check = look(write(folder, a__csv=texts(labels)), f"data.labels={task}")
        path = folder / "mine.yaml"
        path.write_text(check.settings)
        found = load_config(str(path), environ={})
        expected = load_config(preset, environ={})
        assert (found.transform, found.training) == (expected.transform, expected.training)
        assert found.evaluation == expected.evaluation


def test_thresholds_of_the_user_are_kept(tmp_path):
    folder = write(tmp_path, a__csv=texts(["1", "2", "3", "4", "5"]))
    for own, expected in (
        (["evaluation.min_accuracy=0.3"], {"min_accuracy": 0.3, "min_class_recall": 0}),
        (
            ["evaluation.min_accuracy=0.3", "evaluation.min_class_recall=0.2"],
            {"min_accuracy": 0.3, "min_class_recall": 0.2},
        ),
    ):
        check = look(folder, "data.labels=stars", *own)
        assert yaml.safe_load(check.settings)["evaluation"] == expected
        assert "min_accuracy" not in check.few_texts.settings


def test_many_texts_and_settings_with_a_training_get_no_note(tmp_path):
    assert few_texts(PipelineConfig(), "sentiment", 2, 20_001) is None
    assert few_texts(PipelineConfig(), "sentiment", 2, 20_000)
    folder = write(tmp_path, a__csv=texts(["positive", "negative"]))
    for setting in ("training.epochs=3", "training.model=text_cnn", "transform.ngrams=1"):
        check = look(folder, setting)
        assert check.few_texts is None
