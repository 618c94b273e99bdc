"""Runs in MLflow, and the way back to an earlier model, against MLflow's own server."""

import re
import shlex
import socket

import pytest
import yaml

from tests.browser import open_browser
from tests.checkout import CHECKOUT
from tests.e2e.conftest import LITTLE
from tests.e2e.harness import Workspace
from tests.e2e.mlflow_server import NAME, values
from tests.waiting import wait

pytestmark = [
    pytest.mark.slow,
    pytest.mark.both_stacks,
    pytest.mark.xdist_group("mlflow"),
    pytest.mark.timeout(1800),
]
SECRET = "open-sesame-17"


@pytest.fixture(scope="module")
def story(mlflow_server, tmp_path_factory):
    """Run the commands of the guide; return the workspace, and the result of each command."""
    page = (CHECKOUT / "docs/how-to/mlflow.md").read_text()
    commands = re.findall(r"^\$ amazon-reviews (.*)$", page, re.MULTILINE)
    settings = yaml.safe_load(re.search(r"^```yaml\n(.*?)^```", page, re.M | re.S)[1])
    assert settings.pop("paths") == {"root": "runs"}
    settings["tracking"]["mlflow"] = mlflow_server.uri
    # Few reviews, so that a run takes a minute.
    limits = {"data": LITTLE["data"], "evaluation": {"min_class_recall": 0.0}}
    environ = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": SECRET}
    folder = tmp_path_factory.mktemp("tracked")
    workspace = Workspace(folder, {**limits, **settings}, environ)
    (folder / "tracked.yaml").symlink_to(workspace.config)
    return workspace, [workspace.command(*shlex.split(command)) for command in commands]


def test_the_guide_goes_back_to_the_first_model(mlflow_server, story):
    workspace, done = story
    assert [each.returncode for each in done] == [0, 3, 0, 0, 0], [each.stderr for each in done]
    first, second, _ = workspace.pushed()
    assert f"serves version {first.name} again" in done[-1].stdout
    assert "champion is version 1 of" in done[-1].stdout
    assert mlflow_server.champion() == (first.name, 2)
    tags = [values(run["data"]["tags"]) for run in mlflow_server.runs()][::-1]
    assert [of_run["result"] for of_run in tags[:3]] == ["pushed", "not blessed", "pushed"]
    verdict = tags[1]["verdict"]
    assert verdict.startswith("The model is not blessed and was not pushed: accuracy is 0.")
    assert verdict == tags[1]["mlflow.note.content"]
    assert tags[1]["mlflow.runName"].startswith("not blessed: ")
    lines = [line.split() for line in workspace.command("models").stdout.splitlines()[1:]]
    found = [(line[0], line[-1]) for line in lines]
    assert found == [(second.name, "back"), (first.name, "served")]


def test_the_link_of_the_guide_shows_the_runs_to_a_new_browser(mlflow_server, story):
    page = (CHECKOUT / "docs/how-to/mlflow.md").read_text()
    [path] = re.findall(r"http://127\.0\.0\.1:5000(/#\S+)`", page)
    runs = mlflow_server.runs()
    names = [run["info"]["run_name"] for run in runs]
    # Other tests may have used the server before.
    path = path.replace("experiments/1", f"experiments/{runs[0]['info']['experiment_id']}")
    with open_browser() as browser:
        browser.get(mlflow_server.uri + path)

        def shows_the_runs():
            text = browser.find_element("tag name", "body").text
            return all(name in text for name in names)

        wait(shows_the_runs)


def test_the_page_of_a_run_shows_the_figures_as_a_table(mlflow_server, story):
    run = mlflow_server.runs()[-1]["info"]
    page = f"/#/experiments/{run['experiment_id']}/runs/{run['run_id']}/artifacts/figures.json"
    with open_browser() as browser:
        browser.get(mlflow_server.uri + page)

        def shows_the_table():
            text = browser.find_element("tag name", "body").text
            return "constant answer" in text and "View as table" in text

        wait(shows_the_table)


def test_a_run_and_its_model_are_in_mlflow_and_the_model_predicts(mlflow_server, story):
    from mlflow import pyfunc, set_tracking_uri

    run = mlflow_server.runs()[-1]
    assert run["info"]["status"] == "FINISHED"
    assert values(run["data"]["params"])["training.model"] == "ngram_linear"
    tags = values(run["data"]["tags"])
    assert (tags["result"], tags["platform"]) == ("pushed", "local")
    assert tags["version.tensorflow"].startswith("2.")
    metrics = values(run["data"]["metrics"])
    assert 0.5 < metrics["accuracy"] < 1
    run_id = run["info"]["run_id"]
    curve = mlflow_server.call(f"metrics/get-history?run_id={run_id}&metric_key=train_loss")
    assert len(curve["metrics"]) > 3
    datasets = [each["dataset"] for each in run["inputs"]["dataset_inputs"]]
    assert {each["name"] for each in datasets} == {f"{NAME}/{s}" for s in ("train", "eval", "test")}
    assert len({each["digest"] for each in datasets}) == 3
    files = {"report.html", "figures.json", "evaluation", "model_run", "model"}
    assert mlflow_server.artifacts(run) >= files
    assert "model/MLmodel" in mlflow_server.artifacts(run, "model")
    set_tracking_uri(mlflow_server.uri)
    model = pyfunc.load_model(f"models:/{NAME}@champion")
    assert [column.name for column in model.metadata.signature.inputs.inputs] == ["text"]
    answers = model.predict(model.input_example)
    assert answers["label"].tolist() == [1, 0]


@pytest.mark.exhaustive
def test_a_run_without_an_answer_is_sent_later_with_its_trials(mlflow_server, story):
    tracked, *_ = story
    known = len(mlflow_server.runs())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # It accepts connections and answers none.
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        away = f"training.tuner_trials=2,training.epochs=1,tracking.mlflow={uri}"
        done = tracked.run(f"{away},push.destination=none")
        assert done.returncode == 0, done.stdout
    [log] = sorted((tracked.root / "logs").glob("*.log"))[-1:]
    [warning] = [
        line for line in log.read_text().splitlines() if re.search("was not sent|Retrying", line)
    ]
    assert uri in warning
    sent = tracked.command("runs", "--send")
    assert sent.returncode == 0, sent.stderr
    assert [line[:5] for line in sent.stdout.splitlines()] == ["sent "]
    parent = mlflow_server.runs("tags.result = 'blessed'")[0]["info"]["run_id"]
    children = mlflow_server.runs(f"tags.mlflow.parentRunId = '{parent}'")
    assert len(children) == 2
    assert all("val_loss" in values(each["data"]["metrics"]) for each in children)
    assert len(mlflow_server.runs()) == known + 3
    assert tracked.command("runs", "--send").stdout == ""


def test_the_password_is_nowhere(story):
    tracked, *_ = story
    files = [file for file in tracked.folder.rglob("*") if file.is_file()]
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []
    refused = tracked.run(f"tracking.mlflow=http://me:{SECRET}@127.0.0.1:1")
    assert refused.returncode == 2
    assert SECRET not in refused.stdout + refused.stderr
    assert "MLFLOW_TRACKING_PASSWORD" in refused.stderr


@pytest.mark.exhaustive
def test_a_rolled_back_model_is_not_pushed_again_but_can_be_served_again(mlflow_server, story):
    tracked, *_ = story
    first, second, _ = tracked.pushed()
    # A run that trains the served model registers no second version.
    unchanged = tracked.run("evaluation.min_accuracy=0.01")
    assert unchanged.returncode == 0, unchanged.stdout
    assert mlflow_server.champion() == (first.name, 2)
    again = tracked.command(
        "run", "--set", "data.labels={1: 1, 2: 0}", "--set", "serving_check.min_golden=0"
    )
    assert again.returncode == 2
    assert f"version {second.name}" in again.stderr
    assert "was rolled back" in again.stderr
    failed = mlflow_server.runs()[0]
    assert failed["info"]["status"] == "FAILED"
    assert "was rolled back" in values(failed["data"]["tags"])["mlflow.note.content"]
    forward = tracked.command("rollback", second.name)
    assert forward.returncode == 0, forward.stderr
    assert mlflow_server.champion() == (second.name, 2)
