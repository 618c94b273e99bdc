"""Schedules on either cluster: created, listed and deleted; and the check of their times."""

import grpc
import pytest
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError, InputError
from platforms import submission
from platforms.follow import SubmitError
from tests.platforms.vertex.vertex_server import as_json


def create(cluster, cron="0 3 * * 1", values=(), **more):
    lines = []
    submission.create_schedule(
        cluster.config(**more), cluster.target, cluster.file, dict(values), cron, lines.append
    )
    [line] = lines
    return line


def listed(cluster, **more):
    lines = []
    submission.show_schedules(cluster.config(**more), cluster.target, lines.append)
    return lines


def test_a_schedule_is_created_listed_and_deleted(vertex):
    for cron in ("0 3 * * 1", "*/30 * * * *"):
        line = create(vertex, cron)
        assert line.startswith("scheduled amazon-reviews-20") and line.endswith(f": {cron} (UTC)")
    found = [line.split("  ") for line in listed(vertex)]
    assert sorted(cron for _, cron, _ in found) == ["*/30 * * * *", "0 3 * * 1"]
    assert {state for *_, state in found} == {"active"}
    lines = []
    name = found[0][0]
    submission.delete_schedule(vertex.config(), vertex.target, name, lines.append)
    assert lines == [f"deleted {name}"]
    assert [line.split("  ")[0] for line in listed(vertex)] == [found[1][0]]


def test_schedules_of_other_pipelines_are_not_listed(vertex):
    other = "amazon_reviews_2"
    create(vertex, name=other)
    assert listed(vertex, name="amazon_reviews") == ["no schedules of amazon-reviews"]
    [line] = listed(vertex, name=other)
    assert line.startswith(f"{other.replace('_', '-')}-20")


def test_the_schedule_has_the_pipeline_and_its_parameters(vertex):
    create(vertex, values={"epochs": "3"}, vertex__network="n")
    [schedule] = vertex.server.schedules.values()
    assert schedule.cron == "0 3 * * 1"
    assert schedule.max_concurrent_run_count == 1
    job = as_json(schedule)["createPipelineJobRequest"]["pipelineJob"]
    assert job["runtimeConfig"]["parameterValues"] == {"epochs": 3}
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://bucket/root"
    assert job["network"] == "n"


def test_a_recurring_run_of_kubeflow_is_kept_while_one_of_its_runs_is_in_progress(kubeflow):
    server, objects, pages = kubeflow.server, {"recurringRuns": [], "runs": []}, []
    others = server.answer

    def answer(request):
        kind = request.path.rpartition("/")[2].replace("recurringruns", "recurringRuns")
        if request.method != "GET" or kind not in objects:
            return others(request)
        # Each page has one object.
        pages[:] = pages or [{kind: [each], "next_page_token": "more"} for each in objects[kind]]
        return pages.pop(0) | ({} if pages else {"next_page_token": ""})

    server.answer = answer
    for number, cron in enumerate(("0 3 * * 1", "*/30 * * * *")):
        create(kubeflow, cron, values={"epochs": "3"})
        body = server.find_requests("POST", "/recurringruns")[-1].body
        assert (body["no_catchup"], body["max_concurrency"]) == (True, "1")
        assert body["runtime_config"]["parameters"] == {"epochs": 3}
        known = {"recurring_run_id": f"id-{number}", "status": "ENABLED", "state": "SUCCEEDED"}
        objects["recurringRuns"].append({**body, **known})
        objects["runs"].append({**known, "display_name": "run", "run_id": "r"})
    ends = ("  0 3 * * 1  enabled", "  */30 * * * *  enabled")
    _, name = (line.removesuffix(end) for end in ends for line in listed(kubeflow) if end in line)
    objects["runs"][1]["state"] = "RUNNING"
    with pytest.raises(SubmitError, match=f"{name} is disabled, but not deleted"):
        submission.delete_schedule(kubeflow.config(), kubeflow.target, name, print)
    assert server.find_requests("POST", "id-1:disable") and not server.find_requests("DELETE")
    objects["runs"][1]["state"] = "FAILED"
    submission.delete_schedule(kubeflow.config(), kubeflow.target, name, print)
    assert [request.path[-4:] for request in server.find_requests("DELETE")] == ["id-1"]


def test_a_lost_response_is_not_repeated(vertex):
    vertex.server.fail("CreateSchedule", grpc.StatusCode.UNAVAILABLE, "lost", done=True)
    with pytest.raises(SubmitError, match="it is unknown whether amazon-reviews-20"):
        create(vertex)
    assert len(listed(vertex)) == 1


def test_a_name_that_does_not_exist_is_an_error(vertex):
    with pytest.raises(InputError, match="amazon-reviews-1"):
        submission.delete_schedule(vertex.config(), vertex.target, "amazon-reviews-1", print)


@pytest.mark.parametrize("cron", ["", "0 0 3 * * 1"])
def test_times_have_five_fields(cron):
    with pytest.raises(ConfigError, match=f"has {len(cron.split())} fields instead of 5"):
        submission.check_cron(cron)
    assert submission.check_cron("  0  3 * * 1 ") == "0 3 * * 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schedule", "0 3 * * 1", "--wait"], "--wait and --schedule exclude each other"),
        (["--schedule", ""], "--schedule has no value"),
        (["--delete-schedule", ""], "--delete-schedule has no value"),
        (["--schedules", "--parameter", "epochs=3"], "--parameter is for a run or a new schedule"),
        (["--schedules", "--delete-schedule", "x"], "--schedules and --delete-schedule exclude"),
        (["--schedule", "daily"], "'daily' has 1 fields"),
    ],
)
def test_the_command_checks_its_options_first(arguments, message, capsys):
    done = CliRunner().invoke(app, ["submit", "--target", "kubeflow", *arguments])
    assert done.exit_code == 2
    assert message in done.output + capsys.readouterr().err
