"""`amazon-reviews predict` with TEXT or standard input: a prediction for each line."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli import command
from cli.models import last_pushed_model
from core.errors import UserError
from pipeline.config import PipelineConfig
from serving import answers
from serving.answers import Prediction, answer, read_arguments, read_lines
from serving.predict_text import load_predict_text
from serving.versions import NoModelError
from tests.loaded import run_command
from tests.serving.models import push

COMMAND = [str(Path(sys.executable).with_name("amazon-reviews")), "predict"]


def predict(texts):
    return [Prediction(0.9, 1) if b"good" in text else Prediction(0.1, 0) for text in texts]


def answered(batches, as_json=False):
    """Return the output and the reports for batches of texts."""
    out, reports = io.BytesIO(), []
    unusable = answer(batches, predict, out, reports.append, as_json)
    assert unusable == len(reports)
    return out.getvalue().decode(), reports


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


def test_a_line_of_the_greatest_length_is_used_and_a_longer_one_is_not():
    longest, chunk = answers.MAX_LINE_BYTES, answers._READ_BYTES
    # The line break of the first line is the first byte of a chunk.
    data = b"\n".join(b"y" * size for size in (longest + chunk, longest, longest + 1))
    batches = read_lines(io.TextIOWrapper(io.BytesIO(data)))
    assert [not text.problem for batch in batches for text in batch] == [False, True, False]


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


def write(folder, version, whole=True):
    (folder / version).mkdir(parents=True)
    if whole:
        (folder / version / "saved_model.pb").write_text("")


def latest_model(serving):
    return last_pushed_model(PipelineConfig.model_validate({"paths": {"serving": str(serving)}}))


def test_the_highest_complete_version_is_the_latest(tmp_path):
    for version in ("9", "10", "8", "notes"):
        write(tmp_path, version)
    write(tmp_path, "11", whole=False)
    assert latest_model(tmp_path) == str(tmp_path / "10")


@pytest.mark.parametrize("folder", [".", "missing"])
def test_without_a_model_the_error_names_the_folder(tmp_path, folder):
    serving = str(tmp_path / folder)
    with pytest.raises(NoModelError, match=f"no model has been pushed to {serving} yet"):
        latest_model(serving)


@pytest.mark.parametrize(
    "damage",
    [
        lambda model: (model / "saved_model.pb").write_bytes(b"no graph"),
        lambda model: next(model.glob("variables/*.data-*")).write_bytes(b""),
        lambda model: next(model.glob("variables/*.index")).unlink(),
    ],
    ids=["graph", "weights", "index"],
)
def test_a_damaged_model_is_one_line(tmp_path, damage):
    push(tmp_path / "1")
    damage(tmp_path / "1")
    with pytest.raises(UserError) as raised:
        load_predict_text(str(tmp_path / "1"))
    assert str(raised.value).startswith(f"{tmp_path}/1: the model cannot be loaded (")


def test_the_model_may_be_behind_a_url(monkeypatch, capfdbinary):
    # A file system of TensorFlow's that is not local, as gs:// is.
    folder = "ram://predict/runs/serving"
    push(f"{folder}/9", probability=0.6)
    push(f"{folder}/10", probability=0.8)
    import tensorflow as tf

    tf.io.gfile.makedirs(f"{folder}/11/variables")
    monkeypatch.setenv("PIPELINE_SET", "paths.root=ram://predict/runs")
    monkeypatch.setattr("sys.argv", ["amazon-reviews", "predict"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"good\n")))
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert capfdbinary.readouterr().out == b"positive\t0.800\tgood\n"
    assert not ended.value.code


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    push(folder / "serving" / "1")
    return folder


def test_closed_standard_input_is_2(root, monkeypatch, capfd):
    monkeypatch.setenv("PIPELINE_SET", f"paths.root={root}")
    monkeypatch.setattr("sys.argv", ["amazon-reviews", "predict"])
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "no review given" in capfd.readouterr().err


def test_a_reader_that_leaves_ends_it_quietly(root, monkeypatch):
    source, target = os.pipe()
    os.close(source)
    monkeypatch.setenv("PIPELINE_SET", f"paths.root={root}")
    monkeypatch.setattr("sys.argv", ["amazon-reviews", "predict", "good"])
    with os.fdopen(target, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        with pytest.raises(SystemExit) as ended:
            command.main()
    assert not ended.value.code


@pytest.mark.slow
def test_ctrl_c_is_130(root):
    environment = {**os.environ, "PIPELINE_SET": f"paths.root={root}"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(COMMAND, env=environment, **pipes) as process:
        process.stdin.write(b"good\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"positive\t0.900\tgood\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130
        assert process.communicate() == (b"", b"")


NOT_NEEDED = {
    "IPython",
    "apache_beam",
    "keras",
    "matplotlib",
    "sklearn",
    "tensorflow_transform",
    "tfx",
}


@pytest.mark.slow
def test_one_prediction_loads_tensorflow_and_no_other_large_library(root, monkeypatch):
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    words = ("predict", "good phone", "\n")
    done, printed, loaded = run_command(*words, PIPELINE_SET=f"paths.root={root}")
    assert (done.returncode, done.stderr) == (2, "argument 2: blank\n")
    assert printed == "positive\t0.900\tgood phone\n-\t-\t\n"
    assert "tensorflow" in loaded
    assert loaded & NOT_NEEDED == set()
