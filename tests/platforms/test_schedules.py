"""Schedules on Kubeflow: created, listed and deleted; and the check of their times."""

import pytest
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError, InputError
from platforms import submission
from platforms.follow import SubmitError


def create(cluster, cron="0 3 * * 1", values=(), **more):
    lines = []
    submission.create_schedule(
        cluster.config(**more), cluster.file, dict(values), cron, lines.append
    )
    [line] = lines
    return line


def listed(cluster, **more):
    lines = []
    submission.show_schedules(cluster.config(**more), lines.append)
    return lines


def test_a_recurring_run_of_kubeflow_is_kept_while_one_of_its_runs_is_in_progress(kubeflow):
    server, objects, pages = kubeflow.server, {"recurringRuns": [], "runs": []}, []
    others = server.answer

    def answer(request):
        kind = request.path.rpartition("/")[2].replace("recurringruns", "recurringRuns")
        if request.method != "GET" or kind not in objects:
            return others(request)
        # Each page has one object.
        found = [{kind: [each], "next_page_token": "more"} for each in objects[kind]]
        pages[:] = pages or found or [{}]
        return pages.pop(0) | ({} if pages else {"next_page_token": ""})

    server.answer = answer
    assert listed(kubeflow) == ["no schedules of amazon-reviews"]
    with pytest.raises(InputError, match="no schedule amazon-reviews-1;"):
        submission.delete_schedule(kubeflow.config(), "amazon-reviews-1", print)
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
        submission.delete_schedule(kubeflow.config(), name, print)
    assert server.find_requests("POST", "id-1:disable") and not server.find_requests("DELETE")
    objects["runs"][1]["state"] = "FAILED"
    submission.delete_schedule(kubeflow.config(), name, print)
    assert [request.path[-4:] for request in server.find_requests("DELETE")] == ["id-1"]


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
        (["--target", "vertex", "--schedules"], "schedules require --target kubeflow"),
    ],
)
def test_the_command_checks_its_options_first(arguments, message, capsys):
    done = CliRunner().invoke(app, ["submit", "--target", "kubeflow", *arguments])
    assert done.exit_code == 2
    assert message in done.output + capsys.readouterr().err
