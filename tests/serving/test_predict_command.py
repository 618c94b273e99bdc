"""`amazon-reviews predict` on standard input: a stream, with a prediction for each line."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli import command
from tests.serving.models import push

pytestmark = pytest.mark.slow

COMMAND = [str(Path(sys.executable).with_name("amazon-reviews")), "predict"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    push(folder / "serving" / "1")
    return folder


def start(root, *words, **options):
    environment = {**os.environ, "PIPELINE_SET": f"paths.root={root}"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*COMMAND, *words], env=environment, **{**pipes, **options})


LOADED = """
import sys
from cli.command import main
sys.argv = ["amazon-reviews", "predict", "good phone"]
try:
    main()
finally:
    print("LOADED", *{name.split(".")[0] for name in sys.modules})
"""
NOT_NEEDED = {
    "IPython",
    "apache_beam",
    "keras",
    "matplotlib",
    "sklearn",
    "tensorflow_transform",
    "tfx",
}


def test_one_prediction_loads_tensorflow_and_no_other_large_library(root):
    environment = {**os.environ, "PIPELINE_SET": f"paths.root={root}"}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, check=True
    )
    answer, loaded = done.stdout.splitlines()
    assert answer == "positive\t0.900\tgood phone"
    assert "tensorflow" in loaded.split()
    assert set(loaded.split()) & NOT_NEEDED == set()


def test_the_prediction_of_a_line_precedes_the_next_line(root):
    process = start(root)
    process.stdin.write(b"good phone\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"positive\t0.900\tgood phone\n"
    process.stdin.write(b"\n\xff broken\nbad ph\xc3\xb6ne\r\n")
    process.stdin.flush()
    assert process.stdout.readline() == "negative\t0.100\tbad phöne\n".encode()
    assert process.stderr.readline() == b"line 3: byte 1 (0xff) is not UTF-8, convert it\n"
    out, error = process.communicate(b"not ended, good", timeout=300)
    assert (out, error) == (b"positive\t0.900\tnot ended, good\n", b"")
    assert process.returncode == 2


def test_a_long_stream_is_answered_in_order_and_in_batches(root):
    lines = [f"{'good' if n % 3 else 'bad'} {n} {'x' * (n % 90)}" for n in range(50_000)]
    lines[40_000] = "y" * (2 << 20)
    out, error = start(root).communicate("\n".join(lines).encode(), timeout=300)
    assert error == b"line 40001: longer than 1,048,576 bytes, shorten it\n"
    answered = [line.split("\t")[2] for line in out.decode().splitlines()]
    assert answered == lines[:40_000] + lines[40_001:]


def test_arguments_that_are_not_utf_8_are_named_and_the_others_answered(root):
    out, error = start(root, "good", b"caf\xe9", "bad").communicate(timeout=300)
    assert out.splitlines() == [b"positive\t0.900\tgood", b"negative\t0.100\tbad"]
    assert error == b"argument 2: byte 4 (0xe9) is not UTF-8, convert it\n"


def test_a_reader_that_leaves_ends_it_quietly(root):
    process = start(root)
    process.stdin.write(b"good\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(b"good\n" * 3)
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 0


def test_ctrl_c_is_130(root):
    process = start(root)
    process.stdin.write(b"good\n")
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 130
    assert process.communicate() == (b"", b"")


@pytest.mark.parametrize(
    "damage",
    [
        lambda model: (model / "saved_model.pb").write_bytes(b"no graph"),
        lambda model: next(model.glob("variables/*.data-*")).write_bytes(b""),
        lambda model: next(model.glob("variables/*.index")).unlink(),
    ],
    ids=["graph", "weights", "index"],
)
def test_a_damaged_model_is_1_and_one_line(tmp_path, damage):
    model = tmp_path / "serving" / "1"
    push(model)
    damage(model)
    process = start(tmp_path, "good")
    out, error = process.communicate(timeout=300)
    assert (process.returncode, out) == (1, b"")
    [line] = error.decode().splitlines()
    assert line.startswith(f"{model}: the model cannot be loaded (")


def test_closed_standard_input_is_2(root):
    process = start(root, stdin=subprocess.DEVNULL)
    assert b"no review given" in process.communicate(timeout=300)[1]
    assert process.returncode == 2


def test_the_model_may_be_behind_a_url(monkeypatch, capfdbinary):
    # A file system of TensorFlow's that is not local, as gs:// is.
    folder = "ram://predict/runs/serving"
    push(f"{folder}/9", probability=0.6)
    push(f"{folder}/10", probability=0.8)
    import tensorflow as tf

    tf.io.gfile.makedirs(f"{folder}/11/variables")
    monkeypatch.setenv("PIPELINE_SET", "paths.root=ram://predict/runs")
    monkeypatch.setattr("sys.argv", ["amazon-reviews", "predict"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"good\n"))))
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert capfdbinary.readouterr().out == b"positive\t0.800\tgood\n"
    assert not ended.value.code
