"""Parameters of a run: the submission and the step refuse a wrong value."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from cli import command
from platforms.compile import compile_pipeline
from tests.platforms.settings import settings

pytestmark = pytest.mark.slow

TWO_WORKERS = {"strategy": "multi_worker_mirrored", "workers": 2}
WRONG = {
    "unknown strategy": ({}, "strategy=mirored", "parameter strategy: .*'mirrored'.*, not 'mirore"),
    "no epoch": ({}, "epochs=0", "parameter epochs: .*greater than or equal to 1, not 0"),
    "percent": ({}, "min_accuracy=92", "parameter min_accuracy: .*less than or equal to 1, not 92"),
    "no folder": ({}, "input_base=", "parameter input_base: .*at least 1 character"),
    "local folder": ({}, "input_base=/data", "parameter input_base: /data is not accessible"),
    "a cluster": (
        {},
        "strategy=parameter_server",
        "parameter strategy: parameter_server trains in 1 chief, 1 worker and 1 parameter server, "
        "and the pipeline was compiled for one process; .* compile again",
    ),
    "another cluster": (
        TWO_WORKERS,
        "strategy=parameter_server",
        "parameter strategy: .* and the pipeline was compiled for 2 workers; .* compile again",
    ),
    "no cluster": (
        TWO_WORKERS,
        "strategy=mirrored",
        "parameter strategy=mirrored contradicts .*2 workers need .* compile again",
    ),
}


@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
@pytest.mark.parametrize(("training", "given", "line"), WRONG.values(), ids=WRONG)
def test_the_command_refuses_it(
    request, target, training, given, line, tmp_path, monkeypatch, capfd
):
    submission = request.getfixturevalue(target)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({**submission.settings, "training": training}))
    monkeypatch.setenv("PIPELINE_CONFIG", "")  # the command sets it
    words = ["amazon-reviews", "submit", "--target", target, "--config", str(config)]
    monkeypatch.setattr(sys, "argv", [*words, "--parameter", given])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert re.match(line, lines[0]), lines[0]
    assert not submission.server.find_requests("POST")


def run_step(folder, component, more="", **given):
    """Run a step of a compiled pipeline as its container does, with other parameters."""
    package = folder / "pipeline.yaml"
    compile_pipeline(settings("kubeflow", more=more), "kubeflow", package)
    spec = next(yaml.safe_load_all(package.read_text()))
    task = spec["root"]["dag"]["tasks"][component]
    values = {}
    for name, source in task["inputs"]["parameters"].items():
        if "runtimeValue" in source:
            values[name] = source["runtimeValue"]["constant"]
        else:
            parameter = spec["root"]["inputDefinitions"]["parameters"][name]
            values[name] = parameter["defaultValue"]
    container = spec["deploymentSpec"]["executors"][f"{component}_executor"]["container"]
    executor_input = {
        "inputs": {"parameterValues": {**values, **given}},
        "outputs": {"outputFile": str(folder / "task" / "executor_output.json")},
    }
    arguments = [
        json.dumps(executor_input) if argument == "{{$}}" else argument
        for argument in container["args"]
    ]
    return subprocess.run(
        [sys.executable, *container["command"][1:], *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


@pytest.mark.parametrize(
    ("component", "more", "given", "line"),
    [
        ("Trainer", "", {"strategy": "mirored"}, "parameter strategy: Input should be 'auto'"),
        ("Trainer", "", {"epochs": 0}, "parameter epochs: Input should be greater than"),
        ("Trainer", "", {"epochs": 2.5}, "parameter epochs: must be an integer, not 2.5"),
        (
            "Trainer",
            "training={strategy: multi_worker_mirrored, workers: 2}",
            {"strategy": "parameter_server"},
            "parameter strategy: parameter_server trains in 1 chief, 2 workers",
        ),
        ("Evaluator", "", {"min_accuracy": 92}, "parameter min_accuracy: Input should be less"),
        ("Evaluator", "", {"min_accuracy": "high"}, "parameter min_accuracy: Input should be a va"),
    ],
)
def test_the_step_refuses_it(tmp_path, component, more, given, line):
    done = run_step(tmp_path, component, more, **given)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()[-1]
    assert lines.partition("Executor: ")[2].startswith(line), lines
    assert "Traceback" not in done.stderr
