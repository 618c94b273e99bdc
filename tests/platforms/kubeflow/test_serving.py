"""The InferenceService of the pushed models."""

from __future__ import annotations

import re

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError
from pipeline.config import load_config
from platforms.kubeflow.inference_service import (
    RUNTIME_VERSION,
    inference_service,
    render,
)
from tests.crd import problems
from tests.platforms.image_machine import ROOT
from tests.pod_security import violations

BUCKET = "paths.serving=gs://bucket/serving"
VOLUME = "paths.serving=/mnt/reviews/serving,kubeflow.volume={claim: reviews, mount: /mnt/reviews/}"


def manifest(overrides):
    return inference_service(load_config("sample", environ={"PIPELINE_SET": overrides}))


def test_tensorflow_serving_reads_the_pushed_models():
    service = manifest(f"{BUCKET},name=my_reviews,kubeflow.namespace=ml")
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == ("my-reviews", "ml")
    predictor = service["spec"]["predictor"]
    assert predictor["model"]["modelFormat"] == {"name": "tensorflow"}
    assert predictor["model"]["storageUri"] == "gs://bucket/serving"
    assert "serviceAccountName" not in predictor
    # The default of KServe is a TensorFlow Serving that cannot load the model.
    assert predictor["model"]["runtimeVersion"] == RUNTIME_VERSION
    # Without a server that always runs, the first request would wait for the start of one.
    assert predictor["minReplicas"] == 1
    resources = predictor["model"]["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "1", "memory": "2Gi"}


def test_the_server_satisfies_the_restricted_pod_security_standard():
    predictor = manifest(BUCKET)["spec"]["predictor"]
    container = {"name": "kserve-container", **predictor["model"]}
    # KServe gives its init container the security context of the server.
    init = {"name": "storage-initializer", "securityContext": container["securityContext"]}
    pod = {**predictor, "containers": [container], "initContainers": [init]}
    assert violations(pod) == []
    # TensorFlow Serving's image names no user, and under this standard Kubernetes starts no root.
    assert container["securityContext"]["runAsUser"] > 0


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        ("/mnt/reviews/serving", "pvc://reviews/serving"),
        ("/mnt/reviews/a/b", "pvc://reviews/a/b"),
        ("/mnt/reviews", "pvc://reviews"),
    ],
)
def test_a_path_on_the_volume_is_one_of_its_claim(place, uri):
    service = manifest(f"{VOLUME},paths.serving={place},kubeflow.service_account=reader")
    predictor = service["spec"]["predictor"]
    assert predictor["model"]["storageUri"] == uri
    assert predictor["serviceAccountName"] == "reader"


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ("", "paths.serving"),
        ("paths.serving=/mnt/other,kubeflow.volume={claim: c, mount: /mnt/o}", "paths.serving"),
        (f"{BUCKET},push.destination=none", "push.destination"),
        (f"{BUCKET},push.destination=vertex", "push.destination"),
        (f"{BUCKET},name=reviews_", "name"),
        (f"{BUCKET},name={'r' * 54}", "name"),
    ],
)
def test_a_model_that_no_pod_could_serve_is_refused(overrides, key):
    with pytest.raises(ConfigError, match=f"^{key}: "):
        manifest(overrides)


def test_the_server_is_not_older_than_the_tensorflow_that_trains():
    def number(version):
        return [int(part) for part in version.split(".")[:2]]

    stacks = list((ROOT / "requirements").glob("tfx-*.txt"))
    assert len(stacks) == 2
    for file in stacks:
        [trained_with] = re.findall(r"^tensorflow==(\S+)", file.read_text(), re.MULTILINE)
        assert number(RUNTIME_VERSION) >= number(trained_with), file.name


def test_the_command_writes_a_manifest_for_kubectl(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_SET", BUCKET)
    printed = CliRunner().invoke(app, ["kserve", "--config", "sample"]).stdout
    CliRunner().invoke(
        app, ["kserve", "--config", "sample", "--output", str(tmp_path / "isvc.yaml")]
    )
    assert printed == (tmp_path / "isvc.yaml").read_text()
    assert yaml.safe_load(printed) == manifest(BUCKET)
    assert printed == render(load_config("sample"))
    # The manifest is readable: it has no YAML anchors, and the kind comes before the details.
    assert "&" not in printed and printed.index("kind:") < printed.index("spec:")


@pytest.mark.real_data
@pytest.mark.parametrize("overrides", [BUCKET, f"{VOLUME},kubeflow.service_account=reader"])
def test_the_real_crd_accepts_the_service(real_data, overrides):
    crd = real_data / "crds" / "inferenceservice-2026-08.yaml"
    assert problems(manifest(overrides), crd) == []


@pytest.mark.real_data
def test_the_check_against_the_crd_finds_wrong_fields(real_data):
    wrong = manifest(BUCKET)
    model = wrong["spec"]["predictor"]["model"]
    del model["modelFormat"]["name"]
    model["storageURI"] = model.pop("storageUri")
    model["resources"]["limits"]["memory"] = "much"
    wrong["spec"]["predictor"]["minReplicas"] = "1"
    found = "\n".join(problems(wrong, real_data / "crds" / "inferenceservice-2026-08.yaml"))
    for each in ("name is missing", "storageURI is unknown", "much does not fit", "'1' is no int"):
        assert each in found
