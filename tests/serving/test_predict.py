"""`amazon-reviews predict` with TEXT or standard input: a prediction for each line."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from cli.models import last_pushed_model
from core.errors import UserError
from pipeline.config import PipelineConfig
from preprocessing.labels import SENTIMENT, write_labels
from serving import answers
from serving.answers import Prediction, answer, read_arguments, read_lines
from serving.predict_text import load_predict_text
from serving.versions import NoModelError, is_complete, missing_part
from tests.loaded import run_command
from tests.serving.models import TOPICS, push, push_classes

COMMAND = [str(Path(sys.executable).with_name("amazon-reviews")), "predict"]


def predict(texts):
    return [Prediction(0.9, 1) if b"good" in text else Prediction(0.1, 0) for text in texts]


def answered(batches, as_json=False):
    """Return the output and the reports for batches of texts."""
    out, reports = io.BytesIO(), []
    unusable = answer(batches, predict, out, reports.append, SENTIMENT, as_json)
    assert unusable == len(reports)
    return out.getvalue().decode(), reports


def test_control_characters_of_a_text_are_escaped():
    arguments = read_arguments(["good \x1b[31m\x9b2J\tphone"])
    assert answered(arguments) == ("positive\t0.900\tgood \\x1b[31m\\x9b2J phone\n", [])
    [line] = answered(read_arguments(["good \x1b"]), as_json=True)[0].splitlines()
    assert json.loads(line)["text"] == "good \x1b" and "\x1b" not in line


def test_the_prediction_of_a_line_precedes_the_next_line():
    source, target = os.pipe()
    with os.fdopen(source) as stream:
        batches = read_lines(stream)
        for line in (b"good phone\n", b"bad ph\xc3\xb6ne\r\n"):
            os.write(target, line)
            [text] = next(batches)
            assert text.content == line.strip()
        os.close(target)
        assert list(batches) == []


def test_lines_that_cannot_be_used_are_named_and_the_others_answered():
    lines = [f"{'good' if n % 3 else 'bad'} {n}" for n in range(5_000)]
    lines[4_000] = "y" * (2 << 20)
    data = "\ufeff".encode() + "\n".join(lines).encode() + b"\n\n \n\xff broken\nnot ended, good"
    out, reports = answered(read_lines(io.TextIOWrapper(io.BytesIO(data))))
    assert reports == [
        "line 4001: longer than 1,048,576 bytes, shorten it",
        "line 5003: byte 1 (0xff) is not UTF-8, convert it",
    ]
    found = [line.split("\t") for line in out.split("\n")[:-1]]
    lines[4_000] = ""
    assert [text for *_, text in found] == [*lines, r"\xff broken", "not ended, good"]
    unusable = [n for n, (*row, _) in enumerate(found) if row == ["-", "-"]]
    assert unusable == [4_000, 5_000]


def test_blank_lines_count_wherever_the_stream_is_divided(monkeypatch):
    data = b"\n \n\ngood\n" * 5 + b"\n\xff\n"
    for size in (1, 2, 7, 30):
        monkeypatch.setattr(answers, "_READ_BYTES", size)
        _, reports = answered(read_lines(io.TextIOWrapper(io.BytesIO(data))))
        assert reports == ["line 22: byte 1 (0xff) is not UTF-8, convert it"], size


def test_each_argument_is_one_line():
    texts = ["two\nlines good", "", os.fsdecode(b"caf\xe9"), "tab\there"]
    problems = ["blank", "byte 4 (0xe9) is not UTF-8, convert it"]
    reports = [f"argument {n}: {problem}" for n, problem in enumerate(problems, 2)]
    assert answered(read_arguments(texts)) == (
        "positive\t0.900\ttwo lines good\n-\t-\t\n-\t-\tcaf\\xe9\nnegative\t0.100\ttab here\n",
        reports,
    )
    out, found = answered(read_arguments(texts), as_json=True)
    assert found == reports
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["text"] for line in lines] == [*texts[:2], r"caf\xe9", texts[3]]
    assert [line["label"] for line in lines] == ["positive", None, None, "negative"]
    assert [line["probability"] for line in lines] == [0.9, None, None, 0.1]
    assert [line.get("problem") for line in lines] == [None, *problems, None]


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """A folder of runs with a pushed model of five classes."""
    root = tmp_path_factory.mktemp("topics")
    push_classes(root / "serving" / "1")
    return root


def test_the_name_of_a_class_and_its_probability_are_printed(topics, call, capfdbinary):
    assert call("predict", "c3", "c1 and\tc2", root=topics) == 0
    first, second = capfdbinary.readouterr().out.decode().splitlines()
    assert first == f"{TOPICS.names[3]}\t0.714\tc3"
    # Line breaks and tabs in a name would be columns and lines of their own.
    assert second == '50% "off"  now\t0.435\tc1 and c2'
    assert call("predict", "--json", "c1", root=topics) == 0
    answer = json.loads(capfdbinary.readouterr().out)
    assert answer == {"label": TOPICS.names[1], "probability": 0.714286, "text": "c1"}


def last_model(serving):
    return last_pushed_model(PipelineConfig.model_validate({"paths": {"serving": str(serving)}}))


def test_the_highest_complete_version_is_the_last_one(tmp_path):
    with pytest.raises(
        NoModelError, match=f"no model has been pushed to {tmp_path} yet.*, or set paths.serving"
    ):
        last_model(tmp_path)
    for version in ("9", "10", "8", "notes", "11", "13", "14"):
        push(tmp_path / version)
    (tmp_path / "11" / "saved_model.pb").unlink()
    (tmp_path / "12").touch()
    (tmp_path / "13" / "saved_model.pb").write_bytes(b"")
    shutil.rmtree(tmp_path / "14" / "variables")
    assert last_model(tmp_path) == str(tmp_path / "10")


@pytest.mark.parametrize(
    ("lost", "missing"),
    [
        ("saved_model.pb", "saved_model.pb is missing"),
        ("variables/variables.index", "variables/variables.index is missing"),
        ("variables/variables.data-00000-of-00001", "0 of 1 files variables.data-… exist"),
    ],
)
def test_what_a_model_lacks_is_named(tmp_path, lost, missing):
    push(tmp_path / "1")
    assert is_complete(str(tmp_path / "1"))
    (tmp_path / "1" / lost).unlink()
    assert missing_part(str(tmp_path / "1")) == missing


def test_a_model_of_two_files_of_weights_needs_both(tmp_path):
    push(tmp_path / "1")
    variables = tmp_path / "1" / "variables"
    (variables / "variables.data-00000-of-00001").rename(
        variables / "variables.data-00000-of-00002"
    )
    assert missing_part(str(tmp_path / "1")) == "1 of 2 files variables.data-… exist"
    (variables / "variables.data-00001-of-00002").touch()
    assert is_complete(str(tmp_path / "1"))


@pytest.mark.parametrize("damaged", ["saved_model.pb", "variables/variables.index"])
def test_a_damaged_model_is_one_line(tmp_path, damaged):
    push(tmp_path / "1")
    (tmp_path / "1" / damaged).write_bytes(b"damage")
    with pytest.raises(UserError) as raised:
        load_predict_text(str(tmp_path / "1"))
    assert str(raised.value).startswith(f"{tmp_path}/1: the model cannot be loaded (")


def test_the_classes_of_another_model_are_one_line(tmp_path):
    push(tmp_path / "1")
    write_labels(str(tmp_path / "1" / "assets"), TOPICS)
    with pytest.raises(UserError, match="not return `probabilities` of 5 classes, the number of"):
        load_predict_text(str(tmp_path / "1"))


def test_the_model_may_be_behind_a_url(call, monkeypatch, capfdbinary):
    # A file system of TensorFlow's that is not local, as gs:// is.
    for version, probability in (("9", 0.6), ("10", 0.8)):
        push(f"ram://predict/runs/serving/{version}", probability)
    tf.io.gfile.makedirs("ram://predict/runs/serving/11/variables")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"good\n")))
    assert call("predict", root="ram://predict/runs") == 0
    assert capfdbinary.readouterr().out == b"positive\t0.800\tgood\n"


def test_closed_standard_input_is_2(call, monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", None)
    assert call("predict") == 2
    assert "no review given" in capfd.readouterr().err


def test_the_name_of_a_file_is_noticed(call, capfd, tmp_path):
    file = tmp_path / "my reviews.csv"
    file.write_text("label,text\n1,good\n")
    assert call("predict", str(file), "good") == 0
    out, error = capfd.readouterr()
    assert len(out.splitlines()) == 2
    [line] = [line for line in error.splitlines() if "is a file" in line]
    assert line.startswith(f"{file} is a file, and here its name is classified; ")
    assert f"predict --input '{file}' --output scores.csv` scores the reviews in it" in line


def test_the_name_of_a_folder_is_noticed(call, capfd, tmp_path):
    assert call("predict", str(tmp_path)) == 0
    [line] = [line for line in capfd.readouterr().err.splitlines() if "is a folder" in line]
    assert line.startswith(f"{tmp_path} is a folder, and here its name is classified; ")


def test_a_terminal_is_asked_for_lines(call, monkeypatch, capfd):
    terminal, slave = os.openpty()
    os.write(terminal, b"good\n\x04")
    with os.fdopen(terminal, "wb"), os.fdopen(slave) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert call("predict") == 0
    out, error = capfd.readouterr()
    assert out.endswith("\tgood\n")
    assert "type a review on each line; Ctrl-D ends the input" in error


def test_a_reader_that_leaves_ends_it_quietly(call, monkeypatch):
    source, target = os.pipe()
    os.close(source)
    with os.fdopen(target, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert call("predict", "good") == 0


@pytest.mark.slow
def test_ctrl_c_ends_predict_with_130_and_without_a_traceback(root):
    environment = {**os.environ, "PIPELINE_SET": f"paths.root={root}"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(COMMAND, env=environment, **pipes) as process:
        process.stdin.write(b"good\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"positive\t0.900\tgood\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130
        assert process.communicate() == (b"", b"")


@pytest.mark.slow
def test_one_prediction_loads_tensorflow_and_no_other_large_library(root, monkeypatch):
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    words = ("predict", "good phone", "\n")
    done, printed, loaded = run_command(*words, PIPELINE_SET=f"paths.root={root}")
    assert (done.returncode, done.stderr) == (2, "argument 2: blank\n")
    assert printed == "positive\t0.900\tgood phone\n-\t-\t\n"
    assert "tensorflow" in loaded
    assert loaded & {"apache_beam", "keras", "tensorflow_transform", "tfx"} == set()
