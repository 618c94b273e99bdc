"""Trainings, settings and manifests for tests of training jobs."""

from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from trainer_module.settings import Training, TrainingJob

JOB_FILE = "gs://bucket/model_run/7/job.json"


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


ALL_SETTINGS = make_settings(
    service_account="trainer",
    cpu=3.5,
    memory="16Gi",
    gpus=2,
    pod={
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    },
    volume_claim="reviews",
    volume_mount="/data",
)
PARAMETER_SERVER = {"strategy": "parameter_server", "workers": 3, "parameter_servers": 2}
MULTI_WORKER = {"strategy": "multi_worker_mirrored", "workers": 3}


def containers(manifest):
    """Return the container of each group of replicas; of a TrainJob the part that it sets."""
    if manifest["kind"] == "TrainJob":
        return [manifest["spec"]["trainer"]]
    return [pod["containers"][0] for pod in pods(manifest)]


def pods(manifest):
    """Return the spec of the pods of each group of replicas of a TFJob or JobSet."""
    spec = manifest["spec"]
    if manifest["kind"] == "TFJob":
        return [each["template"]["spec"] for each in spec["tfReplicaSpecs"].values()]
    return [each["template"]["spec"]["template"]["spec"] for each in spec["replicatedJobs"]]
