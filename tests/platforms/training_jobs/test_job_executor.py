"""The Trainer's step on Kubernetes: what it gives to the job, and what it requires of it."""

import pytest

from platforms.training_jobs import kubernetes
from platforms.training_jobs.settings import KUBERNETES_JOB_KEY
from tests.platforms.training_jobs.manifests import make_settings
from tests.platforms.training_jobs.scripted_api import ScriptedApi
from tests.platforms.training_jobs.trainer_step import Step
from tests.trainer_module import conftest

pytestmark = pytest.mark.slow

once, prepared = conftest.once, conftest.prepared


def test_a_job_that_succeeds_without_a_model_is_an_error(prepared, tmp_path, monkeypatch):
    from platforms.training_jobs.executor import KubernetesExecutor

    ScriptedApi(monkeypatch, tmp_path)
    given = []
    monkeypatch.setattr(kubernetes, "run", lambda *arguments: given.append(arguments))
    limits = {"timeout_seconds": 800, "poll_seconds": 0.2}
    settings = make_settings(kind="tfjob", service_account="trainer", **limits)
    platform = {KUBERNETES_JOB_KEY: settings.model_dump()}
    step = Step(KubernetesExecutor, platform, prepared, tmp_path)
    with pytest.raises(RuntimeError, match=f"no model in {step.model}"):
        step.run("one_device", 1)
    [(client, manifest, limits)] = given
    assert (client.kind.name, client.namespace) == ("tfjob", "ml")
    [replica] = manifest["spec"]["tfReplicaSpecs"].values()
    pod = replica["template"]["spec"]
    assert pod["serviceAccountName"] == "trainer"
    assert pod["containers"][0]["command"][-1] == str(step.job_file) and step.job_file.exists()
    assert (limits.timeout_seconds, limits.poll_seconds) == (800, 0.2)
    assert not limits.is_done() and limits.progress() == ""
