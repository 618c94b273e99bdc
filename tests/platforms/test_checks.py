"""A setting that a target requires, and that is missing or wrong, is one line with its key."""

import re

import pytest
from tfx.orchestration.pipeline import Pipeline

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.checks import check_target
from tests.platforms.compiled import settings

VOLUME = "kubeflow.volume={claim: c, mount: /data}"
PEERS = "training={strategy: multi_worker_mirrored, workers: 2}"
POD = "kubeflow.training_pod"


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("vertex", ""),
        ("local", "tracking.mlflow=http://127.0.0.1:5000"),
        ("kubeflow", f"data.input_base=null,{VOLUME},paths.serving=/data/serving"),
        (
            "kubeflow",
            "kubeflow.volume={claim: c, mount: //data/./a/},paths.serving=/data/a/serving",
        ),
        ("vertex", "beam.flink={master: 'localhost:1'},tracking.mlflow=http://localhost.example"),
        ("kubeflow", f"{PEERS},kubeflow={{queue: a, training_pod: {{priorityClassName: b}}}}"),
        # Without kubeflow.volume no other volume has this name.
        ("kubeflow", f"{PEERS},{POD}={{volumes: [{{name: pipeline}}]}}"),
        (
            "kubeflow",
            f"{PEERS},kubeflow={{training_job: trainjob, training_pod: {{tolerations: []}}}}",
        ),
        # Kubernetes accepts these fields.
        (
            "kubeflow",
            f"{PEERS},{POD}={{nodeSelector: {{pool: '3'}}, securityContext: null, "
            "volumes: [{name: a, emptyDir: {sizeLimit: 100}}], affinity: {podAntiAffinity: "
            "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}, "
            "overhead: {cpu: 1, memory: 1Gi}, "
            "tolerations: [{key: a, operator: Exists, tolerationSeconds: 30}], hostNetwork: true}",
        ),
        ("vertex", "cluster.resources={Trainer: {cpu: 4, memory: 16G}}"),
        ("kubeflow", "cluster.resources={Trainer: {gpus: 1, gpu_type: nvidia.com/mig-1g.5gb}}"),
        ("vertex", "cluster.resources={Trainer: {gpus: 1, gpu_type: NVIDIA_H100_80GB}}"),
    ],
)
def test_the_required_settings_are_sufficient(target, more):
    check_target(settings(target, more=more), target)


@pytest.mark.parametrize(
    ("target", "more", "line"),
    [
        ("vertex", "vertex.project=null", "vertex.project: not set"),
        ("kubeflow", "cluster.image=null", "cluster.image: not set"),
        ("vertex", "paths.root=/here", "paths.root: /here is not accessible from Vertex AI; set"),
        ("vertex", "push.destination=vertex", "vertex.serving_image: not set"),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 1, gpu_type: nvidia.com/gpu}}",
            "cluster.resources.Trainer.gpu_type: nvidia.com/gpu is not an accelerator of Vert",
        ),
        (
            "vertex",
            "cluster.resources={Evaluator: {gpus: 1, gpu_type: NVIDIA_TESLA_T5}}",
            "cluster.resources.Evaluator.gpu_type: NVIDIA_TESLA_T5 is not an accelerator of Vertex "
            "AI, did you mean NVIDIA_TESLA_T4?",
        ),
        (
            "kubeflow",
            "cluster.resources={Trainer: {gpus: 1, gpu_type: NVIDIA_TESLA_T4}}",
            "cluster.resources.Trainer.gpu_type: NVIDIA_TESLA_T4 is not the name of a resource ",
        ),
        (
            "kubeflow",
            "kubeflow.training_pod={nodeSelector: {pool: gpu}}",
            "kubeflow.training_pod: has no effect, because a single process trains in the step; ",
        ),
        ("kubeflow", "kubeflow.queue=team-a", "kubeflow.queue: has no effect, because a single "),
        (
            "vertex",
            f"{PEERS},cluster.resources={{Trainer: {{cpu: 4}}}}",
            "cluster.resources.Trainer.cpu: has no effect, because the replicas of the training a",
        ),
        (
            "vertex",
            f"{PEERS},cluster.resources={{Trainer: {{memory: 16G}}}}",
            "cluster.resources.Trainer.memory: has no effect, because the replicas of the trainin",
        ),
        (
            "kubeflow",
            "tracking.mlflow=http://127.0.0.1:5000",
            "tracking.mlflow: http://127.0.0.1:5000 is not reachable from a container; set an add",
        ),
        (
            "vertex",
            "tracking.mlflow=https://localhost/mlflow",
            "tracking.mlflow: https://localhost/",
        ),
        *(
            (
                "vertex",
                f"tracking.mlflow='http://{host}:5000'",
                f"tracking.mlflow: http://{host}:5000 i",
            )
            for host in ("[::1]", "0.0.0.0", "[::]", "localhost.")
        ),
        (
            "kubeflow",
            "beam={runner: flink, flink: {master: 'a:1', job_endpoint: 'localhost:8099'}}",
            "beam.flink.job_endpoint: localhost:8099 is not reachable from a container; set an ad",
        ),
        ("kubeflow", "paths.root=/here", "paths.root: /here is not in a bucket of Google"),
        ("kubeflow", "paths.root=s3://b/r", "paths.root: s3://b/r is not in a bucket of Google Cl"),
        ("kubeflow", "paths.serving=file:///srv", "paths.serving: file:///srv is not accessible f"),
        ("kubeflow", "push.destination=none,paths.serving=/srv", "paths.serving: /srv is not acc"),
        ("vertex", "push.destination=none,paths.serving=/srv", "paths.serving: /srv is not acces"),
        ("kubeflow", "data.input_base=http://h/x", "data.input_base: http://h/x is not accessibl"),
        (
            "kubeflow",
            f"{VOLUME},paths.checkpoints=s3://bucket/data",
            "paths.checkpoints: s3://bucket/data is not accessible from the pods of Kubeflow; set",
        ),
        ("kubeflow", "paths.checkpoints=/here", "paths.checkpoints: /here is not accessible f"),
        ("kubeflow", f"{VOLUME},paths.serving=/database/x", "paths.serving: /database/x"),
        ("local", "data.splits={train: a}", "data.input_base: not set, and data.splits requires"),
        ("local", "push.destination=vertex", "push.destination: vertex requires --target vert"),
        (
            "kubeflow",
            "cluster.resources={Trainer: {gpus: 2}},training.devices=4",
            "training.devices: 4 devices, but only 2 GPUs are available "
            "(cluster.resources.Trainer.gpus is 2",
        ),
        (
            "vertex",
            "cluster.resources={Trainer: {gpus: 2}},training.jit_compile=true",
            "training.jit_compile: true compiles the step of a single device, not of mirrored (",
        ),
        (
            "kubeflow",
            "kubeflow.training_pod={tolerations: [{key: a}, {keys: b}]}",
            "kubeflow.training_pod.tolerations.1.keys: unknown field, did you mean key?",
        ),
        (
            "kubeflow",
            f"{PEERS},kubeflow={{training_job: trainjob, training_pod: {{priorityClassName: b}}}}",
            "kubeflow.training_pod.priorityClassName: a TrainJob has no such field; remove it, and",
        ),
        (
            "kubeflow",
            f"{PEERS},kubeflow={{training_job: trainjob, "
            "training_pod: {initContainers: [{name: node}]}}",
            "kubeflow.training_pod.initContainers.0.name: the pod has another one with the name no",
        ),
        (
            "kubeflow",
            f"{PEERS},{VOLUME},kubeflow.training_pod={{volumes: [{{name: pipeline}}]}}",
            "kubeflow.training_pod.volumes.0.name: the pod has another one with the name pipeline",
        ),
        *(
            (
                "kubeflow",
                f"{PEERS},kubeflow.training_pod={{{pod}}}",
                f"kubeflow.training_pod.{line}",
            )
            for pod, line in [
                (
                    "nodeSelector: {pool: 3}",
                    "nodeSelector.pool: must be a string in quotation marks, not 3",
                ),
                ("nodeSelector: gpu", "nodeSelector: must be a mapping, not 'gpu'"),
                (
                    "volumes: [{name: a}, {name: scratch}]",
                    "volumes.1.name: the pod has another one with the name scratch; set a name ",
                ),
                (
                    "volumes: [{name: a}, {name: a}]",
                    "volumes.1.name: the pod has another one with the name a; set a name other",
                ),
                ("initContainers: [{name: tensorflow}]", "initContainers.0.name: the pod has an"),
                (
                    "volumes: [{name: a}, {emptyDir: {}}]",
                    "volumes.1.name: not set, and Kubernetes requires it",
                ),
                ("initContainers: [{name: null}]", "initContainers.0.name: not set, and Kuber"),
                (
                    "initContainers: [{name: a, volumeMounts: [{name: b}]}]",
                    "initContainers.0.volumeMounts.0.mountPath: not set, and Kubernetes requires",
                ),
                ("hostNetwork: 'yes'", "hostNetwork: must be a boolean, true or false, not 'yes'"),
                (
                    "terminationGracePeriodSeconds: 60s",
                    "terminationGracePeriodSeconds: must be a whole number, not '60s'",
                ),
                ("priority: true", "priority: must be a whole number, not True"),
                (
                    "volumes: [{name: a, secret: {defaultMode: 0400}}]",
                    "volumes.0.secret.defaultMode: must be a whole number in decimal, here 256, "
                    "not '0400'",
                ),
                ("imagePullSecrets: [key]", "imagePullSecrets.0: must be a mapping, not 'key'"),
                ("securityContext: {1: a}", "securityContext.1: unknown field, known are "),
            ]
        ),
    ],
)
def test_the_error_names_the_unsuitable_setting(target, more, line):
    with pytest.raises(ConfigError) as error:
        check_target(settings(target, more=more), target)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("cluster.resources={Trainr: {cpu: 1}}", "unknown component Trainr"),
        ("cluster.resources={Trainer: {memory: 16GB}}", "cluster.resources.Trainer.memory"),
        *(
            (
                f"cluster.resources={{Trainer: {{memory: '{memory}'}}}}",
                "cluster.resources.Trainer.memory: must be at least 1 MiB and have a unit, such as",
            )
            for memory in ("16", "512k", "0G", "0.001M")
        ),
        (
            "cluster.resources={Trainer: {gpu_type: NVIDIA_L4}}",
            "cluster.resources.Trainer: gpu_type: NVIDIA_L4 has no effect with gpus: 0; set gpus ",
        ),
        ("kubeflow.volume={claim: c, mount: '/a:b'}", "kubeflow.volume.mount"),
        (
            "kubeflow.volume={claim: c, mount: /tmp}",
            "kubeflow.volume.mount: a volume at /tmp would",
        ),
        ("kubeflow.volume={claim: c, mount: //tmp/./}", "kubeflow.volume.mount: a volume at /tmp "),
        ("kubeflow.volume={claim: c, mount: //}", "kubeflow.volume.mount: a volume at / would hid"),
        ("kubeflow.volume={claim: c, mount: /}", "kubeflow.volume.mount: a volume at / would hide"),
        *(
            (
                f"kubeflow.volume={{claim: c, mount: {folder}}}",
                f"kubeflow.volume.mount: a volume at {folder} would hide files of the container",
            )
            for folder in (
                "/usr",
                "/usr/local",
                "/usr/lib",
                "/opt",
                "/opt/venv",
                "/var/run",
                "/etc",
            )
        ),
        *(
            (f"cluster.image={image}", "cluster.image: must be the name of an image, such as exa")
            for image in (
                *("my image", "example/Reviews:1", "http://example/reviews", "a:1:2", "a/"),
                *("'[::1]'", "'[::1/reviews'", "'[host]/reviews'"),
            )
        ),
        *(
            (
                f"cluster.image='example/reviews@{digest}'",
                "cluster.image: .* and 64 hexadecimal digits, or @sha512: and 128, not 'example/re",
            )
            for digest in ("sha256:12", f"sha512:{'a' * 64}", f"sha256:{'A' * 64}")
        ),
        *(
            (
                f"vertex.region='{region}'",
                "vertex.region: must be a region, such as europe-west4, a",
            )
            for region in ("europe-west4-a", "Europe-West4", "europe west4", "http://x")
        ),
        *(
            (
                f"beam.flink={{{key}: '{address}'}}",
                f"beam.flink.{key}: must be HOST:PORT without http",
            )
            for key in ("master", "job_endpoint", "worker_pool")
            for address in ("http://flink:8081", "flink", "flink:65536", "flink:0", ":8081")
        ),
        ("beam.flink.master=local", r"at most 65535, or \[local\], not 'local'"),
        (
            "vertex.project=My_Project",
            "vertex.project: must be the id of a project, .* or its number, not 'My_Project'",
        ),
        ("vertex.project='projects/p'", "vertex.project: .* not 'projects/p'"),
        ("vertex.serving_image=Serving:2", "vertex.serving_image: must be the name of an image"),
        (f"kubeflow.namespace={'n' * 64}", "kubeflow.namespace"),
        (f"name={'n' * 64}", "name: must have at most 63 characters, not 'n"),
        ("kubeflow.service_account=Trainer", "kubeflow.service_account"),
        ("kubeflow.service_account=a..b", "kubeflow.service_account"),
        ("kubeflow.training_pod={containers: []}", "cluster.image and cluster.resources describe"),
        # JobSet and the training operator would replace it without a word.
        (
            "kubeflow.training_pod={restartPolicy: Always}",
            "which pods are restarted; remove restart",
        ),
        # A training would wait for host names that do not exist, until its timeout.
        (
            "kubeflow.training_pod={hostname: a}",
            "the host names that the job sets; remove hostname",
        ),
        ("kubeflow.training_pod={subdomain: a}", "host names that the job sets; remove subdomain"),
    ],
)
def test_wrong_values_are_refused_when_loading(more, line):
    with pytest.raises(ConfigError, match=line):
        load_config("sample", [more] if more else [], environ={})


def test_the_message_for_the_placeholders_of_the_guides_has_a_name_that_is_accepted():
    with pytest.raises(ConfigError) as error:
        load_config("sample", ["cluster.image=HOST/PROJECT/amazon-reviews:1"], environ={})
    [name] = re.findall("such as ([^,]+),", str(error.value))
    assert load_config("sample", [f"cluster.image={name}"], environ={}).cluster.image == name


@pytest.mark.parametrize(
    "image",
    [
        "reviews",
        "localhost:5000/reviews",
        "HOST.example:5000/team-a/some_reviews/x--y:v1.2-RC",
        f"example/reviews:1@sha256:{'0a' * 32}",
        f"example/reviews@sha512:{'0a' * 64}",
        "[2001:db8::1]/reviews",
        "[2001:db8::1]:5000/reviews:1",
    ],
)
def test_the_names_of_images_that_container_runtimes_accept(image):
    assert load_config("sample", [f"cluster.image='{image}'"], environ={}).cluster.image == image


@pytest.mark.parametrize("region", ["us-central1", "northamerica-northeast2", "europe-west12"])
@pytest.mark.parametrize("project", ["my-project-1", "example.com:my-project", "'12'", "12"])
def test_the_projects_and_regions_of_google_cloud(project, region):
    override = f"vertex={{project: {project}, region: {region}}}"
    found = load_config("sample", [override], environ={}).vertex
    assert (found.project, found.region) == (project.strip("'"), region)


@pytest.mark.parametrize("folder", ["/data", "/opt/data", "/usr/local/data", "/tmp/data", "/home"])
def test_the_folders_of_a_volume_that_hide_no_file(folder):
    override = f"kubeflow.volume={{claim: c, mount: {folder}}}"
    assert load_config("sample", [override], environ={}).kubeflow.volume.mount == folder


def test_a_name_may_be_as_long_as_tfx_allows():
    name = "n" * 63
    assert Pipeline(load_config("sample", [f"name={name}"], environ={}).name, "root").id == name
