"""What `amazon-reviews runtime` writes for an administrator."""

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app
from platforms.jobs.kubernetes_trainer.choice import KINDS
from platforms.jobs.trainjob.runtime import make_runtime
from tests.crd import problems
from tests.platforms.jobs.job_sets import of_train_job
from tests.platforms.jobs.manifests import JOB_FILE, PARAMETER_SERVER, make_job, make_settings

OVERRIDES = ["kubeflow.namespace=ml"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The two documents of the output file."""
    file = tmp_path_factory.mktemp("runtime") / "runtime.yaml"
    arguments = [word for each in OVERRIDES for word in ("--set", each)]
    done = CliRunner().invoke(app, ["runtime", "--output", str(file), *arguments])
    assert done.exit_code == 0, done.output
    text = file.read_text()
    assert "&id" not in text
    return list(yaml.safe_load_all(text))


def test_the_runtime_has_the_name_that_trainjobs_refer_to(written):
    runtime, _ = written
    assert runtime == make_runtime("reviews", None)
    settings = make_settings(runtime="reviews", kind="trainjob")
    [kind] = [kind for kind in KINDS if kind.name == "trainjob"]
    manifest = kind.make_manifest(make_job(), JOB_FILE, settings)
    assert manifest["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]


@pytest.mark.real_data
def test_the_real_crd_accepts_the_written_runtime(written, real_data):
    crd = real_data / "crds" / "clustertrainingruntime-2026-08.yaml"
    assert problems(written[0], crd) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_training_pods_of_all_kinds_accept_only_each_other(written, kind):
    runtime, policy = written
    assert policy["metadata"]["namespace"] == "ml"
    [rule] = policy["spec"]["ingress"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert rule["from"] == [{"podSelector": {"matchLabels": selector}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": 2222}]
    settings = make_settings(runtime="reviews")
    manifest = kind.make_manifest(make_job(**PARAMETER_SERVER), JOB_FILE, settings)
    if kind.name == "tfjob":
        templates = [each["template"] for each in manifest["spec"]["tfReplicaSpecs"].values()]
    else:
        train = kind.name == "trainjob"
        spec = of_train_job(manifest, {"reviews": runtime}) if train else manifest["spec"]
        templates = [each["template"]["spec"]["template"] for each in spec["replicatedJobs"]]
    for template in templates:
        assert selector.items() <= template["metadata"]["labels"].items()
