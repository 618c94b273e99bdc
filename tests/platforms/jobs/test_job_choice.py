"""The kind of job that `kubeflow.training_job` chooses on a cluster."""

import pytest

from core.errors import InputError
from platforms.jobs.choice import KINDS, choose_kind
from platforms.jobs.kubernetes.client import connect
from platforms.jobs.kubernetes.follow import JobFailed
from platforms.jobs.trainjob.status import TrainJob
from tests.platforms.jobs.ground import QUICK, Ground, lines
from tests.platforms.jobs.kubernetes_http import forbidden
from tests.platforms.jobs.manifests import make_settings

RUNTIMES = "clustertrainingruntimes"


def choose(kind="auto"):
    return choose_kind(connect(), make_settings(kind=kind), QUICK).name


def install(server, *titles):
    server.kinds = {kind.title: kind for kind in KINDS if kind.title in titles}


@pytest.mark.parametrize(
    ("installed", "chosen", "logged"),
    [
        (["TFJob", "TrainJob", "JobSet"], "tfjob", "auto: tfjob"),
        (["TrainJob", "JobSet"], "trainjob", "auto: trainjob (no TFJob CRD)"),
        (["JobSet"], "jobset", "auto: jobset (no TFJob CRD; no TrainJob CRD)"),
    ],
)
def test_auto_takes_the_first_kind_that_the_cluster_has(server, log, installed, chosen, logged):
    install(server, *installed)
    assert choose() == chosen
    assert [line for line in lines(log) if line.endswith(logged)]


def test_a_trainjob_requires_our_runtime(server, log):
    install(server, "TrainJob", "JobSet")
    server.runtimes.clear()
    assert choose() == "jobset"
    assert "no ClusterTrainingRuntime amazon-reviews" in log.text


def test_auto_needs_no_permission_to_read_runtimes(server, log):
    install(server, "TrainJob", "JobSet")
    server.fail("GET", RUNTIMES, forbidden("get", RUNTIMES, "trainer.kubeflow.org"), "always")
    assert choose() == "jobset"
    assert "does not allow this step to get clustertrainingruntimes" in log.text


def test_another_resource_of_the_group_is_not_enough(server):
    # Kubeflow Trainer v2 and others share groups with what v1 had.
    server.fail("GET", r"/apis/kubeflow\.org/v1$", (200, {"resources": [{"name": "mpijobs"}]}))
    assert choose() == "trainjob"


def test_a_cluster_without_any_kind_is_an_error(server):
    install(server)
    with pytest.raises(InputError, match=r"no TFJob CRD; no TrainJob CRD; no JobSet CRD\. Install"):
        choose()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_that_is_set_is_taken_without_a_request(server, kind):
    install(server)
    assert choose(kind.name) == kind.name
    assert server.requests == []


def test_a_missing_runtime_names_the_file_that_has_it(server, log, tmp_path):
    server.runtimes.clear()
    ground = Ground(server, None, tmp_path, TrainJob())
    with pytest.raises(InputError, match=r"403 .*applies kubeflow/training.yaml"):
        ground.run()


def test_a_field_that_an_older_crd_drops_is_an_error(server, log, tmp_path):
    server.on_create = lambda job: None
    ground = Ground(server, None, tmp_path, TrainJob())
    manifest = ground.manifest()
    older = {**manifest, "spec": {**manifest["spec"]}, "metadata": {"uid": "1"}}
    del older["spec"]["runtimePatches"]
    server.fail("POST", ground.path, (201, older))
    with pytest.raises(JobFailed, match=r"no field spec\.runtimePatches"):
        ground.run_manifest(manifest)
