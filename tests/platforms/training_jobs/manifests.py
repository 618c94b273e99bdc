"""Trainings, settings and manifests for tests of training jobs."""

import copy

from platforms.training_jobs.job import CustomJobSettings, KubernetesJobSettings
from tests.kubeflow_files import training_runtime
from trainer_module.settings import Training, TrainingJob

JOB_FILE = "gs://bucket/model_run/7/job.json"
PARAMETER_SERVER = {"strategy": "parameter_server", "workers": 3, "parameter_servers": 2}
MULTI_WORKER = {"strategy": "multi_worker_mirrored", "workers": 3}


def make_job(serving_model_dir="gs://bucket/model/7/Format-Serving", **training):
    return TrainingJob(
        train_files=["train-*"],
        eval_files=["eval-*"],
        transform_graph="graph",
        serving_model_dir=serving_model_dir,
        model_run_dir="gs://bucket/model_run/7",
        checkpoint_dir="gs://bucket/checkpoints/0123456789abcdef",
        training=Training(**training),
    )


def make_settings(**settings):
    return KubernetesJobSettings(
        **{"image": "registry/reviews:1", "namespace": "ml", "timeout_seconds": 3600.5} | settings
    )


def make_custom_settings(**settings):
    given = {
        "project": "my-project",
        "region": "europe-west4",
        "display_name": "amazon-reviews-training",
        "image": "registry/reviews:1",
        "machine_type": "n1-standard-8",
        "timeout_seconds": 3600.0,
        "poll_seconds": 0.02,
    }
    return CustomJobSettings(**given | settings)


ALL_SETTINGS = make_settings(
    service_account="trainer",
    cpu=3.5,
    memory="16Gi",
    gpus=2,
    pod={
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": 15,
    },
    volume_claim="reviews",
    volume_mount="/data",
)


def jobs_of(manifest):
    """Return each group of replicas: its name, its Job (of a TFJob its replica) and its pods."""
    if manifest["kind"] == "TFJob":
        replicas = manifest["spec"]["tfReplicaSpecs"].items()
        return [(task.lower(), each, each["template"]) for task, each in replicas]
    spec = manifest["spec"] if manifest["kind"] == "JobSet" else job_set_of(manifest)
    jobs = [(each["name"], each["template"]["spec"]) for each in spec["replicatedJobs"]]
    return [(name, job, job["template"]) for name, job in jobs]


def job_set_of(train_job):
    """Return the spec of the JobSet that Kubeflow Trainer makes of a TrainJob and our runtime."""
    trainer = train_job["spec"]["trainer"]
    spec = copy.deepcopy(training_runtime()["spec"]["template"]["spec"])
    [node] = spec["replicatedJobs"]
    job = node["template"]["spec"]
    job["parallelism"] = job["completions"] = trainer["numNodes"]
    pod = job["template"]["spec"]
    [container] = pod["containers"]
    container |= {"image": trainer["image"], "command": trainer["command"]}
    container |= {"resources": trainer.get("resourcesPerNode", {})}
    container["env"] = [*container["env"], *trainer["env"]]
    [patch] = train_job["spec"]["runtimePatches"]
    [patched] = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    fields = dict(patched["template"]["spec"]["template"]["spec"])
    for more in fields.pop("containers", []):
        container["volumeMounts"] = [*container["volumeMounts"], *more["volumeMounts"]]
    pod |= {**fields, "volumes": [*pod["volumes"], *fields.get("volumes", [])]}
    return spec


def pod_with(exit_code, container):
    """Return a failed pod of the API whose container ended with an exit code."""
    state = {"terminated": {"exitCode": exit_code, "reason": "Error"}}
    status = {"phase": "Failed", "containerStatuses": [{"name": container, "state": state}]}
    return {"metadata": {"name": "pod", "uid": "1"}, "status": {**status, "conditions": []}}
