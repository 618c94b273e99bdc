"""The schedule of a pipeline, on either cluster."""

import re
import shlex
import shutil

import grpc
import pytest
import yaml
from typer.testing import CliRunner

from cli import compile as command
from cli.compile import app
from core.errors import ConfigError, InputError, ServerError
from platforms.schedule import check_cron
from tests.platforms.submission import JOB, PLATFORM, SPEC
from tests.platforms.vertex.vertex_server import as_json

TIME = {
    "kubeflow": "{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}",
    "vertex": "{{$.pipeline_job_schedule_time_utc}}",
}
DAYS = "gs://bucket/data/{YYYY}-{MM}-{DD}"


def test_kubeflow_gets_a_recurring_run(kubeflow):
    kubeflow.schedule(f"span={TIME['kubeflow']}-1d", "epochs=3", data__input_base=DAYS)
    [recurring] = kubeflow.server.recurring
    assert recurring == {
        "recurring_run_id": "s-1",
        "display_name": "amazon-reviews",
        "experiment_id": "e-1",
        "pipeline_spec": {"pipeline_spec": SPEC, "platform_spec": PLATFORM},
        "runtime_config": {
            "parameters": {"span": f"{TIME['kubeflow']}-1d", "epochs": 3},
            "pipeline_root": "gs://bucket/root",
        },
        "service_account": "ksa",
        "trigger": {"cron_schedule": {"cron": "0 0 3 * * *"}},
        "max_concurrency": "1",
        "no_catchup": True,
        "mode": "ENABLE",
    }
    assert kubeflow.lines == [
        "scheduled amazon-reviews at 0 3 * * * UTC",
        "http://kubeflow.example/#/recurringrun/details/s-1",
    ]


def test_vertex_gets_a_schedule(vertex):
    vertex.schedule(
        f"span={TIME['vertex']}",
        "epochs=3",
        vertex__service_account="runner@my-project",
        data__input_base=DAYS,
    )
    [(name, schedule)] = vertex.server.schedules.items()
    assert as_json(schedule) == {
        "name": name,
        "displayName": "amazon-reviews",
        "cron": "TZ=UTC 0 3 * * *",
        "maxConcurrentRunCount": "1",
        "allowQueueing": True,
        "createPipelineJobRequest": {
            "parent": "projects/my-project/locations/europe-west4",
            "pipelineJob": {
                **JOB,
                "displayName": "amazon-reviews",
                "runtimeConfig": {
                    "gcsOutputDirectory": "gs://bucket/root",
                    "parameterValues": {"span": TIME["vertex"], "epochs": 3},
                },
                "serviceAccount": "runner@my-project",
            },
        },
    }
    assert vertex.lines[0] == "scheduled amazon-reviews at 0 3 * * * UTC"


@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_a_second_schedule_requires_the_removal_of_the_first_one(target, request):
    cluster = request.getfixturevalue(target)
    cluster.schedule()
    message = (
        "amazon-reviews has a schedule already; remove it with `amazon-reviews schedule "
        f"--target {target} --remove`"
    )
    with pytest.raises(ConfigError, match=message):
        cluster.schedule()
    cluster.unschedule()
    cluster.unschedule()
    assert cluster.lines[2:] == [
        "removed the schedule of amazon-reviews",
        "amazon-reviews has no schedule",
    ]
    cluster.schedule(cron="30 4 1 * *")


def test_the_recommended_removal_has_the_settings_of_the_command(kubeflow, tmp_path, monkeypatch):
    monkeypatch.setattr(
        command, "compile_checked", lambda package, *_: shutil.copy(kubeflow.file, package)
    )
    file = tmp_path / "my settings.yaml"
    file.write_text(yaml.safe_dump(kubeflow.settings))

    def call(*words):
        done = CliRunner().invoke(app, ["schedule", "--target", "kubeflow", *words])
        return str(done.exception or "")

    settings = ("--config", str(file), "--set", "name=mine")
    assert call("--cron", "0 3 * * *", *settings) == ""
    message = call("--cron", "0 3 * * *", *settings)
    recommended = message.split("`")[1]
    assert recommended == (
        f"amazon-reviews schedule --target kubeflow --remove --config '{file}' --set name=mine"
    )
    assert call(*shlex.split(recommended)[4:]) == ""
    assert kubeflow.server.recurring == []


def test_the_removal_does_not_end_a_run_in_progress(kubeflow):
    kubeflow.schedule()
    runs = kubeflow.server.runs = [
        {"recurring_run_id": "another", "display_name": "another-3", "state": "RUNNING"},
        {"recurring_run_id": "s-1", "display_name": "amazon-reviews-2", "state": "RUNNING"},
        # A run whose workflow was deleted has no end.
        {"recurring_run_id": "s-1", "display_name": "amazon-reviews-1", "state": "RUNNING"},
    ]
    kubeflow.unschedule()
    [recurring] = kubeflow.server.recurring
    assert recurring["mode"] == "DISABLE"
    assert kubeflow.lines[-1] == (
        "stopped the schedule of amazon-reviews: it starts no more runs; its removal would end "
        "amazon-reviews-2, which is in progress, so repeat the command after that run"
    )
    with pytest.raises(ConfigError, match="has a schedule already"):
        kubeflow.schedule()
    runs[1]["state"] = "SUCCEEDED"
    kubeflow.unschedule()
    assert kubeflow.server.recurring == []
    assert kubeflow.lines[-1] == "removed the schedule of amazon-reviews"


@pytest.mark.parametrize(("target", "other"), [("kubeflow", "vertex"), ("vertex", "kubeflow")])
def test_a_placeholder_that_stays_as_it_is_creates_nothing(target, other, request):
    cluster = request.getfixturevalue(target)
    message = re.escape(
        f"has a placeholder that a schedule of {target} does not replace; the time of the schedule "
        f"is {TIME[target]}"
    )
    for value in ("[[ScheduledTime.2006-01-02]]-1d", TIME[other], f"{TIME[target]}[[Index]]"):
        with pytest.raises(ConfigError, match=f"parameter span: .*{message}"):
            cluster.schedule(f"span={value}", data__input_base=DAYS)
    assert not (cluster.server.recurring if target == "kubeflow" else cluster.server.schedules)


@pytest.mark.parametrize("target", ["kubeflow", "vertex"])
def test_the_time_of_the_schedule_requires_dates(target, request):
    cluster = request.getfixturevalue(target)
    with pytest.raises(InputError, match=r"span: .* requires spans in data\.input_base"):
        cluster.schedule(f"span={TIME[target]}-1d")
    with pytest.raises(InputError, match=r"span: .* is not a date"):
        cluster.schedule(f"span=day {TIME[target]}", data__input_base=DAYS)


def test_a_folder_named_after_the_time_of_the_run(kubeflow):
    folder = "gs://bucket/{{workflow.creationTimestamp.Y}}-{{workflow.creationTimestamp.m}}"
    kubeflow.schedule(f"input_base={folder}")
    [recurring] = kubeflow.server.recurring
    assert recurring["runtime_config"]["parameters"] == {"input_base": folder}


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("input_base=s3://bucket/{}", "data.input_base: s3://bucket/1 is not accessible from the"),
        ("input_base=/data/{}", "data.input_base: /data/1 is not accessible from the pods of Kub"),
        ("input_base=gs://bucket/{}/{{YYYY}}", "a span is {SPAN}, or {YYYY}, {MM} and {DD} togeth"),
        ("span={}-11-28", "span: 1795834800 requires spans in data.input_base"),
    ],
)
def test_a_parameter_with_any_placeholder_is_checked(kubeflow, parameter, message):
    with pytest.raises((ConfigError, InputError), match=re.escape(message)):
        kubeflow.schedule(parameter.format("{{workflow.creationTimestamp.Y}}"))
    assert not kubeflow.server.recurring


def test_a_span_of_parts_of_the_time_of_the_run(kubeflow):
    span = "-".join(f"{{{{workflow.creationTimestamp.{part}}}}}" for part in "Ymd")
    kubeflow.schedule(f"span={span}", data__input_base=DAYS)
    assert kubeflow.server.recurring[0]["runtime_config"]["parameters"] == {"span": span}


def test_the_folder_of_a_schedule_requires_a_folder_at_the_compilation(kubeflow):
    kubeflow.settings["data"] = {}
    with pytest.raises(ConfigError, match=r"^parameter input_base: the pipeline was"):
        kubeflow.schedule("input_base=gs://bucket/{{workflow.creationTimestamp.Y}}")
    assert not kubeflow.server.recurring


@pytest.mark.parametrize(
    ("parameter", "error", "message"),
    [
        (
            "epochs=[[Index]]",
            ConfigError,
            "parameter epochs: '\\[\\[Index]]' has a placeholder; only input_base and span may",
        ),
        ("epochs=0", InputError, "epochs"),
        ("days=3", ConfigError, "parameter days: the pipeline has no such parameter"),
    ],
)
def test_a_wrong_parameter_creates_nothing(kubeflow, parameter, error, message):
    with pytest.raises(error, match=message):
        kubeflow.schedule(parameter)
    assert kubeflow.server.recurring == []


def test_without_the_cache_every_step_of_every_run_is_executed(kubeflow):
    kubeflow.schedule(cache=False)
    [recurring] = kubeflow.server.recurring
    tasks = recurring["pipeline_spec"]["pipeline_spec"]["root"]["dag"]["tasks"]
    assert {task["cachingOptions"]["enableCache"] for task in tasks.values()} == {False}


def test_a_lost_response_leaves_no_doubt_about_what_to_check(kubeflow, vertex):
    kubeflow.server.fail("POST", "recurringruns", 0)
    vertex.server.fail("CreateSchedule", grpc.StatusCode.UNAVAILABLE)
    for cluster in (kubeflow, vertex):
        with pytest.raises(ServerError, match="unknown whether amazon-reviews was submitted, che"):
            cluster.schedule()


@pytest.mark.parametrize("cron", ["", "0 3 * *", "0 0 3 * * *", "@daily", "0 3 * * $"])
def test_a_text_that_is_no_cron_expression_is_named(cron):
    with pytest.raises(ConfigError, match="is no cron expression; set minute, hour, day of the"):
        check_cron(cron)


@pytest.mark.parametrize(
    ("cron", "value"),
    [
        ("60 3 * * *", "60 as the minute; set 0 to 59"),
        ("0 3,24 * * *", "24 as the hour; set 0 to 23"),
        ("0 3 0 * *", "0 as the day of the month; set 1 to 31"),
        ("0 3 1-31/2 13 *", "13 as the month; set 1 to 12"),
        ("0 3 * * 1-7", "7 as the day of the week, of which 0 is Sunday; set 0 to 6"),
    ],
)
def test_a_time_that_does_not_exist_is_named(cron, value):
    with pytest.raises(ConfigError) as error:
        check_cron(cron)
    assert str(error.value) == f"--cron: {cron!r} has {value}"


@pytest.mark.parametrize("cron", ["*/15 0-23/2 1,31 JAN-12 0-6", "59 23 ? * MON-FRI"])
def test_the_server_checks_the_rest_of_a_cron_expression(cron):
    assert check_cron(f" {cron} ") == cron


def test_one_of_the_options_is_required(kubeflow):
    for options in ([], ["--cron", "0 3 * * *", "--remove"]):
        done = CliRunner().invoke(app, ["schedule", "--target", "kubeflow", *options])
        assert str(done.exception) == "schedule: set either --cron or --remove"


def test_a_schedule_on_a_later_page_is_found(kubeflow):
    kubeflow.server.recurring = [
        {"recurring_run_id": f"other-{n}", "display_name": f"other-{n}"} for n in range(2)
    ]
    kubeflow.schedule()
    with pytest.raises(ConfigError, match="has a schedule already"):
        kubeflow.schedule()
    kubeflow.unschedule()
    assert [each["recurring_run_id"] for each in kubeflow.server.recurring] == [
        "other-0",
        "other-1",
    ]
