"""Errors: the message in one line, and the exit code."""

import re
from pathlib import Path

import pytest

from tests.e2e.harness import Workspace


def workspace(folder, reviews, **data):
    inputs = folder / "input"
    inputs.mkdir()
    for name, text in reviews.items():
        (inputs / name).write_text(text)
    return Workspace(folder, {"data": {"input_base": str(inputs), **data}})


def fasttext(label, count, words="some words"):
    return "".join(f"__label__{label} Title {i}: {words}\n" for i in range(count))


def test_a_wrong_setting_is_2_and_one_line(tmp_path):
    done = workspace(tmp_path, {}).run("training.epochs=none")
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "training.epochs: Input should be a valid integer, not 'none'" in line


def test_predict_without_a_pushed_model_is_exit_code_2_and_one_line(tmp_path):
    done = workspace(tmp_path, {}).command("predict", "Great")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "no model has been pushed to" in line
    assert "amazon-reviews run" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reviews", "data", "message"),
    [
        ({}, {}, "contain no file of reviews"),
        ({"a.txt": fasttext(1, 3)}, {"splits": {"train": "*.csv"}}, "matches the glob '*.csv'"),
        ({"a.bin": "neither nor"}, {}, "a.bin"),
        (
            {"train.ft.txt": fasttext(1, 3), "train.ft.txt.bz2": "the same, packed"},
            {"splits": {"train": "train.ft.txt*"}},
            "input/train.ft.txt.bz2 contain the same reviews",
        ),
        (
            {"a.csv": "label,text\n0,bad\n1,good\n", "b.csv": "label,text\n4,good\n5,good\n"},
            {},
            "input/b.csv has the label 5, but no scale has both: set data.label_scale",
        ),
    ],
)
def test_unusable_input_is_2_before_a_component_starts(tmp_path, reviews, data, message):
    done = workspace(tmp_path, reviews, **data).run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stdout
    assert "ReviewExampleGen" not in done.stdout


@pytest.mark.slow
def test_a_wrong_golden_sentence_is_2_before_a_component_starts(tmp_path):
    golden = tmp_path / "golden.txt"
    golden.write_text("positive\tLovely\nneutral\tIt is a phone\n")
    files = {"a.txt": fasttext(1, 50) + fasttext(2, 50)}
    done = workspace(tmp_path, files).run(f"serving_check.golden={golden}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert (
        f"serving_check.golden: {golden}, line 2: unknown label 'neutral'; write negative or "
        "positive"
    ) in done.stdout
    assert "ReviewExampleGen" not in done.stdout


@pytest.mark.slow
def test_too_many_rejected_lines_are_2_with_the_first_few_shown(tmp_path):
    reviews = fasttext(1, 50) + fasttext(2, 50) + "no label here\n" * 7
    done = workspace(tmp_path, {"a.txt": reviews}).run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert "failed: ReviewExampleGen: 7 of 107 lines (6.5%) cannot be used" in done.stdout
    assert "data.max_rejected_fraction (0.01)" in done.stdout
    assert "a.txt:101 bad_label (no label here); a.txt:102" in done.stdout
    assert "a.txt:106" not in done.stdout


@pytest.mark.slow
def test_data_of_one_class_stop_at_the_gate_with_feature_and_reason(tmp_path):
    done = workspace(tmp_path, {"a.txt": fasttext(2, 200)}).run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert "failed: DataGate: the data does not fit the schema: train: label: " in done.stdout
    assert "unique values" in done.stdout
    assert "Transform" not in done.stdout


@pytest.mark.slow
def test_a_failed_run_has_a_report_of_what_it_did(tmp_path):
    failed = workspace(tmp_path, {"a.txt": fasttext(2, 200)})
    assert failed.run().returncode == 2
    file = tmp_path / "report.html"
    done = failed.command("report", "--output", str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}\n")
    page = file.read_text(encoding="utf-8")
    assert "The run failed. DataGate: the data does not fit the schema: train: label: " in page
    assert '<th scope="row">a.txt</th><td>200</td>' in page
    assert re.search(r'<li class="missed">train: label: .*unique values', page)
    assert "Words per review" in page
    assert "DataGate</th><td>failed</td>" in page
    assert "Not available" not in page


@pytest.mark.slow
def test_any_other_failure_is_1_with_the_component_and_its_error(tmp_path):
    files = {"a.txt": fasttext(1, 50) + fasttext(2, 50)}
    # Beam itself refuses this argument.
    done = workspace(tmp_path, files).run("beam.args=[--runner=NoSuchRunner]")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search("failed: ReviewExampleGen: .*NoSuchRunner", done.stdout, re.IGNORECASE)
    assert "log: " in done.stdout
    log = done.stdout.rpartition("log: ")[2].strip()
    assert "Traceback" in Path(log).read_text()
