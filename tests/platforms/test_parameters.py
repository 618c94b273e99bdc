"""Parameters of a run: the submission and the step refuse a wrong value."""

import json

import pytest
from tfx.types import standard_artifacts
from tfx.utils import json_utils

from components.properties import RUN_PARAMETERS
from components.trainer import with_run_parameters
from core.errors import ConfigError, UserError
from platforms import entrypoint
from platforms.submission import check_parameters
from tests.platforms.compiled import compiled, settings
from trainer_module.settings import Training

TWO_WORKERS = {"strategy": "multi_worker_mirrored", "workers": 2}


@pytest.mark.parametrize(
    ("training", "given", "line"),
    [
        ({}, "epoch=3", "parameter epoch: the pipeline has no such parameter"),
        ({}, "strategy=mirored", "parameter strategy: .*'mirored', did you mean mir"),
        ({}, "input_base=", "parameter input_base: the value is empty"),
        ({}, "strategy= ", "parameter strategy: the value is empty"),
        ({}, "input_base=gs:///data", "parameter input_base: gs:///data has no bucket"),
        ({}, "input_base=/data", "data.input_base: /data is not accessible"),
        ({}, "input_base=s3://bucket/data", "data.input_base: s3://bucket/data is not accessible"),
        ({}, "span=2026-11-28", "parameter span=2026-11-28 contradicts .*data.input_base; write"),
        ({}, "span=", "parameter span: the value is empty"),
        (TWO_WORKERS, "strategy=mirrored", "parameter strategy=mirrored contradicts .*2 workers"),
    ],
)
def test_the_submission_refuses_it(training, given, line):
    config = settings("kubeflow").model_copy(update={"training": Training(**training)})
    name, _, text = given.partition("=")
    with pytest.raises(UserError, match=f"^{line}"):
        check_parameters(config, "kubeflow", {name: text})


def test_a_pipeline_that_was_compiled_with_the_sample_has_no_other_input():
    config = settings("kubeflow", more="data.input_base=null")
    line = "^parameter input_base: the pipeline was compiled with the sample .* and compile again$"
    with pytest.raises(ConfigError, match=line):
        check_parameters(config, "kubeflow", {"input_base": "gs://bucket/raw"})
    assert check_parameters(config, "kubeflow", {"epochs": "3"}) == {"epochs": 3}


def test_a_span_is_a_date_or_a_number_as_the_input_base_has_it():
    config = settings("kubeflow", more="data.input_base=gs://bucket/{YYYY}/{MM}/{DD}")
    given = {"span": "2026-11-28"}
    assert check_parameters(config, "kubeflow", given) == given
    given = {"span": "7", "input_base": "gs://bucket/day-{SPAN}"}
    assert check_parameters(config, "kubeflow", given) == given
    with pytest.raises(UserError, match="span: 7 is not a date"):
        check_parameters(config, "kubeflow", {"span": "7"})


READERS = {
    "input_base": "ReviewExampleGen",
    "span": "ReviewExampleGen",
    "epochs": "Trainer",
    "strategy": "Trainer",
    "min_accuracy": "Evaluator",
}


@pytest.mark.parametrize(("name", "component"), READERS.items())
def test_each_parameter_of_a_run_reaches_its_component_and_the_report(name, component):
    found = compiled("kubeflow")
    for task in (component, "RunReport"):
        given = found.tasks[task]["inputs"]["parameters"][name]
        assert given == {"componentInputParameter": name}, task
    assert RUN_PARAMETERS.keys() == READERS.keys()


@pytest.mark.parametrize("epochs", [7, 7.0, "7"])
def test_the_trainer_uses_the_parameters_of_the_run(epochs):
    compiled_with = {"epochs": 3, "strategy": "one_device", "learning_rate": 0.5}
    properties = {
        "custom_config": json_utils.dumps({"training": compiled_with, "code": "1"}),
        "epochs": epochs,
        "strategy": "mirrored",
    }
    examples = standard_artifacts.Examples()

    def found():
        used = with_run_parameters({"examples": [examples]}, properties)
        return json_utils.loads(used["custom_config"])

    training = {"epochs": 7, "strategy": "mirrored", "learning_rate": 0.5}
    assert found() == {"training": training, "code": "1"}
    examples.set_int_custom_property("unseen_span", 4)
    assert found() == {"training": training, "code": "1", "unseen_span": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "more", "given", "line"),
    [
        (
            "Trainer",
            "training={strategy: multi_worker_mirrored, workers: 2}",
            {"strategy": "parameter_server"},
            "parameter strategy: parameter_server requires other processes than those",
        ),
        ("Evaluator", "", {"min_accuracy": 92}, "parameter min_accuracy: must be at most 1"),
    ],
)
def test_the_step_refuses_it(tmp_path, capsys, component, more, given, line):
    found = compiled("kubeflow", more=more)
    defaults = found.spec["root"]["inputDefinitions"]["parameters"]
    values = {}
    for name, source in found.tasks[component]["inputs"]["parameters"].items():
        if "runtimeValue" in source:
            values[name] = source["runtimeValue"]["constant"]
        else:
            values[name] = defaults[name]["defaultValue"]
    arguments = found.container(component)["args"]
    executor_input = {
        "inputs": {"parameterValues": {**values, **given}},
        "outputs": {"outputFile": str(tmp_path / "task" / "executor_output.json")},
    }
    text = json.dumps(executor_input)
    code = entrypoint.main([text if argument == "{{$}}" else argument for argument in arguments])
    error = capsys.readouterr().err
    assert code == 2, error
    assert error.splitlines()[-1].partition("Executor: ")[2].startswith(line), error
    assert "Traceback" not in error
