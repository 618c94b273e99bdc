"""Errors: the message in one line, and the exit code."""

import re
from pathlib import Path

import pytest

from tests.e2e.harness import Workspace


def workspace(folder, reviews):
    inputs = folder / "input"
    inputs.mkdir()
    for name, text in reviews.items():
        (inputs / name).write_text(text)
    return Workspace(folder, {"data": {"input_base": str(inputs)}})


def fasttext(label, count):
    return "".join(f"__label__{label} Title {i}: some words\n" for i in range(count))


def test_predict_without_a_pushed_model_is_2_and_one_line(tmp_path):
    done = workspace(tmp_path, {}).command("predict", "Great")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "no model has been pushed to" in line
    assert "amazon-reviews run" in line


@pytest.mark.slow
def test_data_of_one_class_stop_at_the_gate_and_the_report_has_the_reason(tmp_path):
    failed = workspace(tmp_path, {"a.txt": fasttext(2, 200)})
    done = failed.run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert "failed: DataGate: the data does not fit the schema: train: label: " in done.stdout
    assert "unique values" in done.stdout and "train: every review is positive" in done.stdout
    assert "Transform" not in done.stdout

    file = tmp_path / "report.html"
    done = failed.command("report", "--output", str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}\n")
    page = file.read_text(encoding="utf-8")
    assert "The run failed. DataGate: the data does not fit the schema: train: label: " in page
    assert '<th scope="row">a.txt</th><td>200</td>' in page
    assert re.search(r'<li class="missed">train: label: .*unique values', page)
    assert "DataGate</th><td>failed</td>" in page
    assert "Not available" not in page


@pytest.mark.slow
@pytest.mark.exhaustive
def test_any_other_failure_is_1_with_the_component_and_its_error(tmp_path):
    files = {"a.txt": fasttext(1, 50) + fasttext(2, 50)}
    # Beam itself refuses this argument.
    done = workspace(tmp_path, files).run("beam.args=[--runner=NoSuchRunner]")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search("failed: ReviewExampleGen: .*NoSuchRunner", done.stdout, re.IGNORECASE)
    log = done.stdout.rpartition("log: ")[2].strip()
    assert "Traceback" in Path(log).read_text()
