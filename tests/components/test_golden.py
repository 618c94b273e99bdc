"""The file of golden sentences: its format and its errors."""

import os

import pytest

from components.serving_check.golden import MAX_BYTES, read_golden
from core.errors import ConfigError
from pipeline.config import load_config


def test_comments_blank_lines_and_windows_line_ends_are_allowed(tmp_path):
    file = tmp_path / "golden.txt"
    file.write_bytes(
        "\ufeff# mine\r\n\r\npositive\tSchöner Bildschirm\r\nnegative\tWith a\ttab".encode()
    )
    sentences = [("positive", "Schöner Bildschirm"), ("negative", "With a\ttab")]
    assert read_golden(str(file)) == sentences


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"positive\tgood\ngreat phone\n",
            ", line 2: 'great phone' is not negative or positive, a",
        ),
        (b"positive\tcaf\xe9\n", r": byte 13 \(0xe9\) is not UTF-8, convert it"),
        (b"# nothing\n\n", " has no sentence; write lines of negative or positive, a tab and"),
        (b"positive\t" + b"x" * MAX_BYTES, " has 65,545 bytes; at most 65,536 are allowed"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_and_line(tmp_path, content, problem):
    file = tmp_path / "golden.txt"
    with pytest.raises(ConfigError, match=r"golden.txt cannot be read: No such file or directory"):
        read_golden(str(file))
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^serving_check.golden: {file}{problem}"):
        read_golden(str(file))


def test_a_class_in_the_settings_may_have_any_normal_form_of_unicode(tmp_path):
    file = tmp_path / "golden.txt"
    file.write_text("Ru\u0308ckgabe \tIch sende es zurück\n", encoding="utf-8")
    assert read_golden(str(file), ["R\xfcckgabe"]) == [("R\xfcckgabe", "Ich sende es zurück")]
    overrides = ["evaluation.min_class_recall={Ru\u0308ckgabe: 0.5}"]
    evaluation = load_config(None, overrides, environ={}).evaluation
    assert evaluation.min_class_recall == {"R\xfcckgabe": 0.5}


@pytest.mark.parametrize("classes", [["#bug", "other"], []])
def test_the_name_of_a_class_may_begin_with_the_sign_of_a_comment(tmp_path, classes):
    file = tmp_path / "golden.txt"
    file.write_text("#bug\tleft out for now\n\\#bug\tIt crashes\nother\t#fine\n")
    assert read_golden(str(file), classes) == [("#bug", "It crashes"), ("other", "#fine")]


def test_the_path_is_that_of_a_file_of_this_machine():
    config = load_config(environ={"PIPELINE_SET": "serving_check.golden=mine.txt"})
    assert config.serving_check.golden == os.path.abspath("mine.txt")
    with pytest.raises(ConfigError, match=r"serving_check\.golden: must be a path of this machine"):
        load_config(environ={"PIPELINE_SET": "serving_check.golden=gs://bucket/mine.txt"})
