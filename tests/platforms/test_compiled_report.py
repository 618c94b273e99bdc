"""The end of a compiled pipeline: the serving check before the push, the report as last step."""

import pytest
from kfp import dsl

from components.properties import RUN_PARAMETERS
from tests.platforms.settings import REQUIRED
from tests.platforms.test_compile import Compiled

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=REQUIRED)
def compiled(request, tmp_path_factory):
    return Compiled(tmp_path_factory.mktemp(request.param), request.param)


def before(tasks, name):
    """Return the tasks that must end before a task starts."""
    found = set()
    waiting = [name]
    while waiting:
        new = set(tasks[waiting.pop()].get("dependentTasks", [])) - found
        found |= new
        waiting += new
    return found


def test_the_check_is_between_evaluator_and_pusher_and_the_report_is_last(compiled):
    assert "Evaluator" in compiled.tasks["ServingCheck"]["dependentTasks"]
    assert {"Evaluator", "ServingCheck"} <= set(compiled.tasks["Pusher"]["dependentTasks"])
    # Vertex AI looks up the blessing of the baseline in a task that no other task waits for.
    components = {name for name in compiled.tasks if not name.endswith("-resolver")}
    assert before(compiled.tasks, "RunReport") >= components - {"RunReport"}


def test_the_report_gets_the_parameters_of_the_run(compiled):
    given = compiled.tasks["RunReport"]["inputs"]["parameters"]
    names = {name: value.get("componentInputParameter") for name, value in given.items()}
    assert {name for name, of_run in names.items() if of_run} == RUN_PARAMETERS.keys()
    assert all(names[name] == name for name in RUN_PARAMETERS)


def test_the_outputs_of_the_report_have_the_types_of_kfps_own_classes(compiled):
    component = compiled.tasks["RunReport"]["componentRef"]["name"]
    outputs = compiled.spec["components"][component]["outputDefinitions"]["artifacts"]
    own = {
        "report": dsl.HTML,
        "metrics": dsl.Metrics,
        "classification": dsl.ClassificationMetrics,
    }
    assert {name: output["artifactType"] for name, output in outputs.items()} == {
        name: {"schemaTitle": kind.schema_title, "schemaVersion": kind.schema_version}
        for name, kind in own.items()
    }
