"""A push to an endpoint of Vertex AI: the container, the traffic, the previous model, kills."""

import shutil
import time
import zlib
from unittest.mock import Mock

import grpc
import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components.baseline import PushedBaseline, existing_model
from components.destination import make_destination
from core.errors import ConfigError, InputError
from pipeline.config import PipelineConfig
from pipeline.destinations import destination_json
from platforms import models
from platforms.vertex import api as vertex_api
from platforms.vertex import pusher
from tests.components.test_pusher import push_model
from tests.platforms.vertex.vertex_server import as_json, serving
from tests.serving.models import push as save
from tests.waiting import in_background, wait

pytestmark = pytest.mark.slow

VERTEX = {
    "project": "my-project",
    "region": "europe-west4",
    "serving_image": "registry/serving:2.21.0",
    "machine_type": "n1-standard-4",
}
CONFIG = PipelineConfig.model_validate({"vertex": VERTEX, "push": {"destination": "vertex"}})
DESTINATION = destination_json(CONFIG)
ENDPOINT_FIELDS = ("CreateEndpoint", "DeployModel", "UpdateEndpoint", "UndeployModel")


def push(folder):
    """Run the Pusher on a model, another one for each folder; return the PushedModel."""
    saved = folder / "model" / "Format-Serving"
    if not saved.exists():
        save(saved, zlib.crc32(folder.name.encode()) / 2**32)
    return push_model(folder / "model", folder / "pushed", DESTINATION)


@pytest.fixture
def vertex(log, monkeypatch):
    monkeypatch.setattr(vertex_api, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(pusher, "POLL_SECONDS", 0.02)
    with serving() as server:
        monkeypatch.setattr(vertex_api, "connect", server.connect)
        yield server


def served(vertex):
    """Return (model, traffic) of each model that is deployed to the only endpoint."""
    [endpoint] = vertex.endpoints.values()
    split = dict(endpoint.traffic_split)
    return [(d.model.rpartition("/")[2], split.get(d.id, 0)) for d in endpoint.deployed_models]


def test_the_first_push_creates_an_endpoint_that_serves_the_model(vertex, tmp_path):
    pushed = push(tmp_path)
    [model] = vertex.models.values()
    assert model.artifact_uri == str(tmp_path / "pushed")
    trained = tmp_path / "model" / "Format-Serving" / "saved_model.pb"
    assert (tmp_path / "pushed" / "1" / "saved_model.pb").read_bytes() == trained.read_bytes()
    assert as_json(model.container_spec) == {
        "imageUri": "registry/serving:2.21.0",
        "command": ["/usr/bin/tensorflow_model_server"],
        "args": [
            "--port=8500",
            "--rest_api_port=8080",
            "--model_name=amazon-reviews",
            "--model_base_path=$(AIP_STORAGE_URI)",
            "--file_system_poll_wait_seconds=60",
        ],
        "ports": [{"containerPort": 8080}],
        "predictRoute": "/v1/models/amazon-reviews:predict",
        "healthRoute": "/v1/models/amazon-reviews",
    }
    model_id = model.name.rpartition("/")[2]
    assert served(vertex) == [(model_id, 100)]
    [endpoint] = vertex.endpoints.values()
    assert endpoint.display_name == "amazon-reviews"
    resources = endpoint.deployed_models[0].dedicated_resources
    assert resources.machine_spec.machine_type == "n1-standard-4"
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_version") == model_id


def test_an_endpoint_and_a_model_of_others_with_the_same_name_are_not_changed(vertex, tmp_path):
    push(tmp_path / "first")
    [(endpoint_name, endpoint)] = vertex.endpoints.items()
    [model_name] = vertex.models
    other = type(endpoint)(endpoint, name=f"{endpoint_name}-of-others")
    other.labels.clear()
    vertex.endpoints = {other.name: other, endpoint_name: endpoint}
    model = vertex.models[model_name]
    vertex.models["others"] = type(model)(model, name=f"{model_name}-of-others")
    vertex.models["others"].labels.clear()
    push(tmp_path / "second")
    assert [each.model for each in other.deployed_models] == [model_name]
    assert [each.model == model_name for each in endpoint.deployed_models] == [False]
    assert list(states()) == ["served", ""]


def test_the_next_push_moves_the_traffic_and_undeploys_the_previous_model(vertex, tmp_path):
    push(tmp_path / "first")
    [(old, _)] = served(vertex)
    del vertex.requests[:]
    vertex.slow = {"DeployModel"}
    thread, raised = in_background(lambda: push(tmp_path / "second"))
    wait(lambda: vertex.find_requests("GetOperation"))
    # The old model serves until the new one is deployed.
    assert served(vertex) == [(old, 100)]
    vertex.finish()
    thread.join(60)
    assert raised == []
    [(new, traffic)] = served(vertex)
    assert (new != old, traffic) == (True, 100)
    order = [name for name, _ in vertex.requests if name in ENDPOINT_FIELDS]
    assert order == ["DeployModel", "UpdateEndpoint", "UndeployModel"]
    # The previous model stays in the registry, for a rollback.
    assert len(vertex.models) == 2


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("method", ["UploadModel", *ENDPOINT_FIELDS])
def test_a_failed_request_is_completed_by_the_next_attempt(vertex, tmp_path, method, done):
    push(tmp_path / "first")
    if method == "CreateEndpoint":
        vertex.endpoints.clear()
    del vertex.requests[:]
    vertex.fail(method, grpc.StatusCode.DATA_LOSS, "gone", done=done)
    push(tmp_path / "second")
    [(_, traffic)] = served(vertex)
    assert traffic == 100
    # Completed requests are not repeated.
    assert len(vertex.find_requests(method)) == 2 - done
    assert len(vertex.models) == 2


def test_a_killed_push_is_completed_by_the_next_attempt(vertex, tmp_path, monkeypatch):
    push(tmp_path / "first")
    del vertex.requests[:]
    vertex.slow = {"DeployModel"}
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        # The push ends while Vertex AI deploys the model.
        sleep = Mock(side_effect=KeyboardInterrupt)
        killed.setattr(pusher, "time", Mock(sleep=sleep, monotonic=time.monotonic))
        push(tmp_path / "second")
    received = len(vertex.requests)
    thread, raised = in_background(lambda: push(tmp_path / "second"))
    wait(lambda: len(vertex.requests) > received + 2)
    vertex.finish()
    thread.join(60)
    assert raised == []
    [(_, traffic)] = served(vertex)
    assert traffic == 100
    assert len(vertex.find_requests("DeployModel")) == 1


def test_a_refusal_by_vertex_is_one_line(vertex, tmp_path):
    vertex.fail("DeployModel", grpc.StatusCode.INVALID_ARGUMENT, "no machine")
    with pytest.raises(InputError, match="refuses to deploy the model: 400 no machine"):
        push(tmp_path)


def test_an_error_blames_the_setting_of_the_endpoint(monkeypatch):
    connect = Mock(side_effect=ConnectionError("unreachable"))
    monkeypatch.setattr(vertex_api, "connect", connect)
    endpoint = make_destination(DESTINATION)
    # A constructor that connects could raise where TFX hides exceptions.
    assert not connect.called
    with pytest.raises(ConfigError, match=r"^push.destination: vertex: cannot be read or written"):
        models.list_models(CONFIG)
    damaged = endpoint.damaged_baseline("gs://b/1", ValueError("half"))
    assert damaged.endswith("(half); run `amazon-reviews rollback` to serve the model before it")
    assert endpoint.no_baseline() == "no other model is served from the endpoint amazon-reviews"


def states():
    return [model.state for model in make_destination(DESTINATION).pushed_models()]


def test_a_rollback_serves_the_previous_model_and_the_bad_one_is_not_pushed_again(vertex, tmp_path):
    push(tmp_path / "good")
    [(good, _)] = served(vertex)
    push(tmp_path / "bad")
    [(bad, _)] = served(vertex)
    endpoint = make_destination(DESTINATION)
    assert endpoint.roll_back().name == good
    assert served(vertex) == [(good, 100)]
    assert states() == ["rolled back", "served"]
    for name in ("good", "bad"):
        shutil.copytree(tmp_path / name / "model", tmp_path / "again" / name / "model")
    with pytest.raises(InputError, match=f"{bad} .* was rolled back"):
        push(tmp_path / "again" / "bad")
    # The same model is no second one.
    again = push(tmp_path / "again" / "good")
    assert again.get_string_custom_property("pushed_version") == good
    assert len(vertex.models) == 2
    push(tmp_path / "third")
    assert endpoint.roll_back().name == good
    endpoint.roll_back(bad)
    assert served(vertex) == [(bad, 100)]
    assert states() == ["rolled back", "served", "rolled back"]
    with pytest.raises(InputError, match="the endpoint amazon-reviews: no version 'no-such-model'"):
        endpoint.roll_back("no-such-model")


@pytest.mark.parametrize("method", ["UpdateModel", "DeployModel", "UpdateEndpoint"])
def test_a_rollback_that_ends_between_two_requests_is_completed_by_a_rerun(
    vertex, tmp_path, monkeypatch, method
):
    for name in ("first", "good", "bad"):
        push(tmp_path / name)
        time.sleep(0.01)  # The models differ in their time of creation.
    endpoint = make_destination(DESTINATION)
    good = endpoint.pushed_models()[1].name
    request = method[0].lower() + method[1:].replace("Model", "_model").replace("End", "_end")
    client = endpoint._endpoints if method != "UpdateModel" else endpoint._models
    send = getattr(client, request)

    def killed(*arguments, **options):
        send(*arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as kill, pytest.raises(KeyboardInterrupt):
        kill.setattr(client, request, killed)
        endpoint.roll_back()
    if endpoint.served().name != good:
        assert endpoint.roll_back().name == good
    assert [model.state for model in endpoint.pushed_models()] == ["rolled back", "served", ""]


def test_a_rollback_that_vertex_refuses_changes_no_label(vertex, tmp_path):
    push(tmp_path / "good")
    push(tmp_path / "bad")
    vertex.fail("DeployModel", grpc.StatusCode.INVALID_ARGUMENT, "no machine")
    with pytest.raises(InputError, match="400 no machine"):
        make_destination(DESTINATION).roll_back()
    assert states() == ["served", ""]
    push(tmp_path / "third")
    assert states() == ["served", "", ""]


def test_a_refused_return_to_a_model_that_was_rolled_back_leaves_it_rolled_back(vertex, tmp_path):
    push(tmp_path / "good")
    push(tmp_path / "bad")
    [(bad, _)] = served(vertex)
    make_destination(DESTINATION).roll_back()
    vertex.fail("DeployModel", grpc.StatusCode.INVALID_ARGUMENT, "no machine")
    with pytest.raises(InputError, match="400 no machine"):
        make_destination(DESTINATION).roll_back(bad)
    assert states() == ["rolled back", "served"]


def test_the_baseline_is_the_model_that_the_endpoint_serves(vertex, tmp_path):
    def baseline(candidate):
        model, own = standard_artifacts.Model(), standard_artifacts.Model()
        model.uri = str(tmp_path / "baseline" / candidate)
        own.uri = str(tmp_path / candidate / "model")
        PushedBaseline.test_call(destination=DESTINATION, model=model, candidate=own)
        if not existing_model({"baseline_model": [model]}, "baseline_model"):
            return None
        copied = tf.saved_model.load(model.uri + "/Format-Serving")
        probability = copied.signatures["predict_text"](tf.constant(["good"]))["probability"]
        return round(float(probability) * 10 - 6)

    for value, name in enumerate(("first", "second", "third")):
        save(tmp_path / name / "model" / "Format-Serving", 0.6 + value / 10)
    assert baseline("first") is None
    push(tmp_path / "first")
    push(tmp_path / "second")
    assert baseline("third") == 1
    # An unchanged run is compared with the model before it.
    assert baseline("second") == 0
    make_destination(DESTINATION).roll_back()
    shutil.rmtree(tmp_path / "baseline")
    assert baseline("third") == 0
