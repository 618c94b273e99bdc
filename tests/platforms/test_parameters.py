"""Parameters of a run: the submission and the step refuse a wrong value."""

import json
import sys

import pytest

from core.errors import UserError
from platforms import entrypoint
from platforms.parameters import SETTINGS_KEY, check_parameters, check_run
from tests.platforms.compiled import compiled
from tests.platforms.settings import settings
from trainer_module.settings import Training

TWO_WORKERS = {"strategy": "multi_worker_mirrored", "workers": 2}
WRONG = {
    "unknown strategy": (
        {},
        "strategy=mirored",
        "parameter strategy: .*'mirored', did you mean mir",
    ),
    "no epoch": ({}, "epochs=0", "parameter epochs: .*greater than or equal to 1, not '0'"),
    "percent": ({}, "min_accuracy=92", "parameter min_accuracy: .*than or equal to 1, not '92'"),
    "no folder": ({}, "input_base=", "parameter input_base: .*at least 1 character"),
    "local folder": ({}, "input_base=/data", "parameter input_base: /data is not accessible"),
    "another cluster": (
        TWO_WORKERS,
        "strategy=parameter_server",
        "parameter strategy: .* and the pipeline was compiled for worker: 2; .* compile again",
    ),
    "no cluster": (
        TWO_WORKERS,
        "strategy=mirrored",
        "parameter strategy=mirrored contradicts .*2 workers need .* compile again",
    ),
}


@pytest.mark.parametrize(("training", "given", "line"), WRONG.values(), ids=WRONG)
def test_the_submission_refuses_it(training, given, line):
    config = settings("kubeflow").model_copy(update={"training": Training(**training)})
    name, _, text = given.partition("=")
    with pytest.raises(UserError, match=f"^{line}"):
        check_parameters(config, "kubeflow", {name: text})


def inputs_of(component, preset="sample", more=""):
    """Compile for Kubeflow; return the arguments of a step and its parameters, as floats."""
    found = compiled("kubeflow", preset, more)
    values = {}
    for name, source in found.tasks[component]["inputs"]["parameters"].items():
        if "runtimeValue" in source:
            value = source["runtimeValue"]["constant"]
        else:
            value = found.spec["root"]["inputDefinitions"]["parameters"][name]["defaultValue"]
        values[name] = float(value) if isinstance(value, int) else value
    return found.container(component)["args"], values


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["sample", "gke"])
def test_the_first_step_accepts_the_defaults_and_keeps_its_own_inputs(preset):
    _, values = inputs_of("ReviewExampleGen", preset)
    assert {"epochs", "strategy", "min_accuracy", SETTINGS_KEY} < set(values)
    check_run({"inputs": {"parameterValues": values}})
    assert "input_base" in values
    assert not {"epochs", "strategy", "min_accuracy", SETTINGS_KEY} & set(values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "more", "given", "line"),
    [
        ("ReviewExampleGen", "", {"epochs": 2.5}, "parameter epochs: Input should be a valid int"),
        ("ReviewExampleGen", "", {"input_base": "/data"}, "parameter input_base: /data is not acc"),
        (
            "Trainer",
            "",
            {"strategy": "mirored"},
            "parameter strategy: unknown value 'mirored', did you mean mirrored?",
        ),
        (
            "Trainer",
            "training={strategy: multi_worker_mirrored, workers: 2}",
            {"strategy": "parameter_server"},
            "parameter strategy: parameter_server requires the processes chief: 1, worker: 2",
        ),
        ("Evaluator", "", {"min_accuracy": 92}, "parameter min_accuracy: Input should be less"),
    ],
)
def test_the_step_refuses_it(tmp_path, monkeypatch, capsys, component, more, given, line):
    monkeypatch.setattr(sys, "argv", sys.argv)
    arguments, values = inputs_of(component, more=more)
    executor_input = {
        "inputs": {"parameterValues": {**values, **given}},
        "outputs": {"outputFile": str(tmp_path / "task" / "executor_output.json")},
    }
    text = json.dumps(executor_input)
    code = entrypoint.main([text if argument == "{{$}}" else argument for argument in arguments])
    error = capsys.readouterr().err
    assert code == 2, error
    last = error.splitlines()[-1]
    assert last.partition("Executor: ")[2].startswith(line), last
    assert "Traceback" not in error
