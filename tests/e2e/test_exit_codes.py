"""Data that cannot be used: the message, the exit code and the report."""

import re

import pytest

from tests.e2e.harness import Workspace


@pytest.mark.slow
def test_data_of_one_class_stop_at_the_gate_and_the_report_has_the_reason(tmp_path):
    inputs = tmp_path / "input"
    inputs.mkdir()
    lines = [f"__label__2 Title {number}: some words\n" for number in range(200)]
    (inputs / "a.txt").write_text("".join(lines))
    failed = Workspace(tmp_path, {"data": {"input_base": str(inputs)}})
    done = failed.run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert "failed: DataGate: the data does not fit the schema: train: label: " in done.stderr
    assert "unique values" in done.stderr and "train: every review is positive" in done.stderr
    assert "Transform" not in done.stdout

    file = tmp_path / "report.html"
    done = failed.command("report", "--output", str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}\n")
    page = file.read_text(encoding="utf-8")
    reason = "DataGate: the data does not fit the schema: train: label: "
    assert f"<p>The run failed.</p><p>{reason}" in page
    assert '<th scope="row">a.txt</th><td>200</td>' in page
    assert re.search(r'<li class="missed">train: label: .*unique values', page)
    assert "DataGate</th><td>failed</td>" in page
    assert "Not available" not in page
