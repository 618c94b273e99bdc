"""Every preset compiles for every target, into files that Kubeflow's own loader takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from kfp import components as kfp_components
from kfp import dsl
from kfp.pipeline_spec import pipeline_spec_pb2

import kubeflow_v2_runner
from cli.compile import compile_to
from cli.init import create_project
from components.properties import COMPONENT_FILE, RUN_PARAMETERS, TRACKING
from components.review_example_gen.inputs import OPTIONS_KEY
from core.code_file import CodeFile
from core.errors import ConfigError
from pipeline.config import PRESETS
from platforms.checks import check_target
from platforms.compile import ENTRYPOINT
from platforms.submission import check_parameters
from platforms.training_jobs.executor import TrainingJobExecutor
from tests.exhaustive import exhaustive
from tests.platforms.compiled import IMAGE, REQUIRED, Compiled, compiled, settings

pytestmark = pytest.mark.slow

# The preset `flink` starts Flink on this machine, which a container does not do.
FITTING = [("vertex", "vertex"), ("gke", "kubeflow")]
PRESET_NAMES = sorted({preset.stem for preset in PRESETS.glob("*.yaml")} - {"flink"})


@pytest.mark.parametrize(
    ("preset", "target"),
    [
        (preset, target) if (preset, target) in FITTING else exhaustive(preset, target)
        for preset in PRESET_NAMES
        for target in REQUIRED
    ],
)
def test_every_preset_compiles_for_every_target(preset, target):
    found = compiled(target, preset)
    # Unknown fields are refused by the parser.
    spec = json_format.ParseDict(found.spec, pipeline_spec_pb2.PipelineSpec())
    assert spec.schema_version == "2.1.0"
    assert spec.pipeline_info.name == "amazon-reviews"
    json_format.ParseDict(
        found.spec["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig()
    )
    loaded = kfp_components.load_component_from_text(yaml.safe_dump(found.spec))
    assert {name: spec.default for name, spec in loaded.component_spec.inputs.items()} == {
        "input_base": "gs://bucket/raw",
        "span": "newest",
        "epochs": settings(target, preset).training.epochs,
        "strategy": settings(target, preset).training.strategy,
        "min_accuracy": settings(target, preset).evaluation.min_accuracy,
    }
    if found.job:
        job = json_format.ParseDict(found.job, pipeline_spec_pb2.PipelineJob())
        assert job.runtime_config.gcs_output_directory == "gs://bucket/root"


@pytest.mark.parametrize("target", REQUIRED)
def test_the_window_and_the_span_reach_the_reading(target):
    more = "data={input_base: 'gs://bucket/{YYYY}-{MM}-{DD}', window: 7, span: 2026-11-28}"
    found = compiled(target, more=more)
    given = found.tasks["ReviewExampleGen"]["inputs"]["parameters"]
    assert given["span"] == {"componentInputParameter": "span"}
    defaults = found.spec["root"]["inputDefinitions"]["parameters"]
    assert defaults["span"]["defaultValue"] == "2026-11-28"
    options = json.loads(found.constant("ReviewExampleGen", OPTIONS_KEY))
    assert (options["window"], options["patterns"]) == (7, {"all": "**"})
    folder = "gs://bucket/root/spans/amazon_reviews"
    assert options["span_cache"] == f"{folder}/ReviewExampleGen"
    assert found.constant("Transform", "span_cache") == f"{folder}/Transform"


@pytest.mark.parametrize("target", REQUIRED)
def test_labels_of_dollars_reach_the_reading(target):
    """Kubernetes would replace `$$`, such as a class of prices, by `$`."""
    found = compiled(target, more="data.labels={'$': cheap, '$$': fair, '$$$': dear}")
    constant = found.constant("ReviewExampleGen", OPTIONS_KEY)
    assert "$" not in constant
    assert json.loads(constant)["read"]["label_map"] == {"$": 0, "$$": 1, "$$$": 2}
    for task in found.tasks.values():
        assert "$" not in json.dumps(task["inputs"])


def test_texts_that_argo_workflows_would_change_reach_the_steps(tmp_path):
    """It replaces {{workflow.name}}, and cannot pass some characters, such as a flag of England."""
    names = [
        "{{workflow.name}}",
        "{{=1+1}} {{{",
        "{{ open",
        "\U0001f3f4\U000e0067\U000e007f",
        "a\x7fb",
    ]
    labels = {name: f"class {name}" for name in names}
    golden = tmp_path / "golden.tsv"
    golden.write_text("".join(f"{label}\ttext {label}\n" for label in labels.values()))
    file = tmp_path / "mine.yaml"
    values = {"data": {"labels": labels}, "serving_check": {"golden": str(golden)}}
    file.write_text(yaml.safe_dump(values, sort_keys=False))
    found = compiled("kubeflow", str(file))
    options = json.loads(found.constant("ReviewExampleGen", OPTIONS_KEY))
    assert list(options["read"]["label_map"]) == names
    assert options["read"]["classes"] == list(labels.values())
    sentences = json.loads(found.constant("ServingCheck", "golden"))["sentences"]
    assert sentences == [[label, f"text {label}"] for label in labels.values()]
    for task in found.tasks.values():
        text = json.dumps(task["inputs"], ensure_ascii=False)
        assert "{{" not in text
        assert not {"\x7f", *names[3]} & set(text)


@pytest.mark.parametrize("target", REQUIRED)
def test_every_step_runs_our_entry_point_in_our_image(target):
    sample = compiled(target)
    containers = [e["container"] for e in sample.executors.values() if "container" in e]
    assert len(containers) >= 11 - bool(sample.job)
    assert all(c["image"] == IMAGE and c["command"] == ENTRYPOINT for c in containers)
    assert "components.trainer.TrainerExecutor" in sample.container("Trainer")["args"]
    # Nothing of the machine that compiles is left in it.
    assert os.getcwd() not in sample.text
    # A submission finds the options of the reading, to add the fingerprint of the input.
    assert json.loads(sample.constant("ReviewExampleGen", OPTIONS_KEY))


def test_the_report_gets_the_parameters_and_has_types_of_kfps_own_classes():
    sample = compiled("kubeflow")
    given = sample.tasks["RunReport"]["inputs"]["parameters"]
    names = {name: value.get("componentInputParameter") for name, value in given.items()}
    assert {name: of for name, of in names.items() if of} == {n: n for n in RUN_PARAMETERS}
    component = sample.tasks["RunReport"]["componentRef"]["name"]
    outputs = sample.spec["components"][component]["outputDefinitions"]["artifacts"]
    own = {"report": dsl.HTML, "metrics": dsl.Metrics, "classification": dsl.ClassificationMetrics}
    assert {name: output["artifactType"] for name, output in outputs.items()} == {
        name: {"schemaTitle": kind.schema_title, "schemaVersion": kind.schema_version}
        for name, kind in own.items()
    }


def test_kubeflow_gets_only_steps_that_it_can_run():
    found = compiled("kubeflow", more="training.warm_start=true")
    assert all(set(executor) == {"container"} for executor in found.executors.values())
    assert "gs://bucket/serving" in found.constant("WarmStartModel", "destination")
    uncached = {name for name, task in found.tasks.items() if not task["cachingOptions"]}
    assert uncached == {"ReviewExampleGen", "ServedModel", "WarmStartModel"}


@pytest.mark.parametrize("pushes", ["filesystem", "none", "vertex"])
def test_vertex_compares_with_what_is_served(pushes):
    more = "tracking.mlflow=http://mlflow:5000,vertex.serving_image=registry/serving:1"
    found = compiled("vertex", more=f"push.destination={pushes},{more}")
    [variable] = found.executors["Trainer_executor"]["container"]["env"]
    assert "http://mlflow:5000" in variable["value"]
    baseline = found.tasks["Evaluator"]["inputs"]["artifacts"]["baseline_model"]
    producer = baseline["taskOutputArtifact"]["producerTask"]
    assert producer == "ServedModel" and not found.tasks[producer]["cachingOptions"]
    destination = found.constant(producer, "destination")
    if pushes == "vertex":
        kind, arguments = json.loads(destination)
        assert kind == "platforms.vertex.pusher.Endpoint"
        assert arguments["vertex"]["serving_image"] == "registry/serving:1"
    else:
        folder = {"serving": "gs://bucket/serving"}
        assert json.loads(destination) == ["components.serving_folder.ServingFolder", folder]
    if pushes != "none":
        assert not found.tasks["Pusher"]["cachingOptions"]
        assert found.constant("Pusher", "destination") == destination


def test_the_code_of_a_project_is_in_the_compiled_pipeline(tmp_path):
    """So the image does not contain it."""
    project = tmp_path / "mine"
    create_project(project)
    file = project / "components" / "my_component.py"
    model = project / "models" / "my_model.py"
    # A cluster would replace them.
    for code in (file, model):
        code.write_text(code.read_text() + "# costs 5 $$, at $(HOME) or {{workflow.name}}\n")
    more = "tracking.mlflow=http://mlflow:5000,cluster.resources={my_component: {cpu: 2}}"
    config = settings("kubeflow", str(project / "mine.yaml"), more)
    compile_to(tmp_path / "pipeline.yaml", config, "kubeflow")
    found = Compiled((tmp_path / "pipeline.yaml").read_text(), "kubeflow")
    constant = found.constant("Trainer", "custom_config")
    assert "$" not in constant and "{{" not in constant
    assert json.loads(constant)["model_file"]["text"] == model.read_text()
    env = {each["name"]: each["value"] for each in found.container("my_component")["env"]}
    assert env.keys() == {COMPONENT_FILE, TRACKING}
    text = file.read_text()
    assert "$" not in env[COMPONENT_FILE] and "{{" not in env[COMPONENT_FILE]
    assert CodeFile.model_validate_json(env[COMPONENT_FILE]).text == text
    assert found.container("my_component")["resources"]["cpuLimit"] == 2
    assert {each["name"] for each in found.container("Trainer")["env"]} == {TRACKING}
    assert "my_component" in found.tasks["Pusher"]["dependentTasks"]


@pytest.mark.parametrize("name", ["a$$b", "$(HOME)", "{{workflow.name}}"])
@pytest.mark.parametrize("target", REQUIRED)
def test_a_path_that_a_cluster_would_change_is_refused(target, name):
    path = f"gs://bucket/{name}"
    for key in ("paths.root", "data.input_base"):
        with pytest.raises(ConfigError) as error:
            check_target(settings(target, more=f"{key}={path}"), target)
        assert str(error.value) == (
            f"{key}: {path} contains $$, $( or {{{{, which a cluster replaces; set one without them"
        )
    argument = f"--temp_location={path}"
    with pytest.raises(ConfigError, match=r"^beam\.args: --temp_location=gs:.* a cluster replaces"):
        check_target(settings(target, more=f"beam.args=['{argument}']"), target)
    with pytest.raises(ConfigError, match=r"^data\.input_base: gs://.* which a cluster replaces"):
        check_parameters(settings(target), target, {"input_base": path})


def test_a_volume_is_mounted_by_every_step():
    more = "kubeflow.volume={claim: reviews, mount: /data},paths.serving=/data/serving"
    found = compiled("kubeflow", more=more)
    executors = found.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) == set(found.executors)
    for executor in executors.values():
        [mount] = executor["pvcMount"]
        assert (mount["constant"], mount["mountPath"]) == ("reviews", "/data")
    loaded = kfp_components.load_component_from_text(found.text)
    assert "kubernetes" in loaded.platform_spec.platforms


@pytest.mark.parametrize(
    ("target", "gpu", "other"),
    [("vertex", "NVIDIA_TESLA_T4", "NVIDIA_L4"), ("kubeflow", "nvidia.com/gpu", "amd.com/gpu")],
)
def test_containers_get_their_resources(target, gpu, other):
    # The pipeline spec has memory in 10^9 bytes.
    memory = "StatisticsGen: {memory: 1.5Gi}, Transform: {memory: 16G}"
    gpus = f"Trainer: {{gpus: 1, cpu: 4, memory: 0.5T}}, Evaluator: {{gpus: 2, gpu_type: {other}}}"
    found = compiled(target, more=f"cluster.resources={{{memory}, {gpus}}}")
    statistics, transform, trainer, evaluator = (
        found.container(name)["resources"]
        for name in ("StatisticsGen", "Transform", "Trainer", "Evaluator")
    )
    assert statistics == {"memoryLimit": pytest.approx(1.610612736)}
    assert transform == {"memoryLimit": 16.0}
    accelerator = {"type": gpu, "count": "1"}
    assert trainer == {"cpuLimit": 4.0, "memoryLimit": 500.0, "accelerator": accelerator}
    assert evaluator == {"accelerator": {"type": other, "count": "2"}}
    assert "resources" not in found.container("Pusher")


JOBS = {
    "kubeflow": (
        "training={strategy: multi_worker_mirrored, workers: 3},"
        "cluster.resources={Trainer: {cpu: 3.5, memory: 16G, gpus: 2, gpu_type: amd.com/gpu}},"
        "kubeflow={training_job: jobset, queue: team-a, training_pod: {nodeSelector: {a: b}},"
        " volume: {claim: reviews, mount: /data}}",
        "AMAZON_REVIEWS_KUBERNETES_JOB",
        {
            "kind": "jobset",
            "queue": "team-a",
            "cpu": 3.5,
            "memory": "16G",
            "gpu_type": "amd.com/gpu",
            "pod": {"nodeSelector": {"a": "b"}},
            "volume_claim": "reviews",
            "volume_mount": "/data",
        },
    ),
    "vertex": (
        "training={strategy: parameter_server, workers: 3, parameter_servers: 2},"
        "cluster.resources={Trainer: {gpus: 2}},"
        "vertex.service_account=me@x,vertex.network=net,vertex.machine_type=n1-highmem-4",
        "AMAZON_REVIEWS_CUSTOM_JOB",
        {
            "display_name": "amazon-reviews-training",
            "machine_type": "n1-highmem-4",
            "gpu_type": "NVIDIA_TESLA_T4",
            "service_account": "me@x",
            "network": "net",
        },
    ),
}


@pytest.mark.parametrize("target", JOBS)
def test_a_cluster_of_processes_is_a_job_with_every_setting(target):
    more, variable, expected = JOBS[target]
    found = compiled(target, more=f"{more},cluster.training_timeout_hours=1.5")
    env = {each["name"]: each["value"] for each in found.container("Trainer")["env"]}
    job = json.loads(env[variable])
    common = {"image": IMAGE, "gpus": 2, "timeout_seconds": 1.5 * 3600}
    assert {**common, **expected}.items() <= job.items()
    container = found.container("Trainer")
    # This step only waits for the processes that train.
    assert "resources" not in container
    assert f"{TrainingJobExecutor.__module__}.TrainingJobExecutor" in container["args"]


def test_the_memory_and_the_nodes_of_a_training_are_no_part_of_the_cache_key():
    """A change of them does not train a model again; a change of the number of GPUs does."""
    workers = "training={strategy: multi_worker_mirrored, workers: 2}"
    before = compiled("kubeflow", more=workers)
    pods = "kubeflow={training_job: jobset, training_pod: {nodeSelector: {a: b}}}"
    memory = "cluster.resources={Trainer: {memory: 16G}}"
    after = compiled("kubeflow", more=f"{workers},{pods},{memory}")
    assert before.container("Trainer")["env"] != after.container("Trainer")["env"]
    for name, task in before.tasks.items():
        if name != "RunReport":
            assert task["inputs"] == after.tasks[name]["inputs"], name
            container = dict(after.container(name)) | {"env": before.container(name).get("env")}
            assert container == {"env": None} | before.container(name), name
    for training in (workers, "training.strategy=mirrored"):
        given = [
            compiled(
                "kubeflow", more=f"{training},cluster.resources={{Trainer: {{gpus: {gpus}}}}}"
            ).constant("Trainer", "custom_config")
            for gpus in (1, 2)
        ]
        assert given[0] != given[1]


@pytest.mark.exhaustive
def test_the_tfx_command_compiles(tmp_path):
    folder = os.path.dirname(sys.executable)
    command = [f"{folder}/tfx", "pipeline", "compile", "--engine", "vertex", "--pipeline_path"]
    # The TFX CLI looks for kfp with the first `pip` of PATH.
    environ = {"PATH": f"{folder}:{os.environ['PATH']}", "PIPELINE_SET": REQUIRED["vertex"]}
    done = subprocess.run(
        [*command, f"{os.getcwd()}/kubeflow_v2_runner.py"],
        cwd=tmp_path,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads((tmp_path / "pipeline.json").read_text())
    assert job["pipelineSpec"] == compiled("vertex").spec


@pytest.mark.parametrize(
    ("target", "count", "of"),
    [("vertex", 1_500, "the step RunReport"), ("kubeflow", 700, "all steps")],
)
def test_settings_that_exceed_an_argument_of_a_container_are_not_compiled(
    tmp_path, target, count, of
):
    """Linux cannot start a program with an argument or a variable of more than 128 KiB."""
    labels = ", ".join(f"a label of a file {index}: the class {index}" for index in range(count))
    file = tmp_path / "pipeline.yaml"
    message = rf"^data\.labels: with it the settings for {of} have 1\d\d,\d{{3}} bytes, and a cont"
    with pytest.raises(ConfigError, match=message) as error:
        compile_to(file, settings(target, more=f"data.labels={{{labels}}}"), target)
    assert "\n" not in str(error.value)
    assert not file.exists()


@pytest.mark.parametrize("output", ["", "/"])
def test_a_folder_is_no_output(output):
    with pytest.raises(ConfigError, match=r"^--output: /.* is not a regular file; name another"):
        compile_to(Path(output), settings("kubeflow"), "kubeflow")


def test_the_runner_refuses_what_is_missing(monkeypatch, capsys):
    monkeypatch.setenv("PIPELINE_SET", "cluster.image=i")
    assert kubeflow_v2_runner.main() == 2
    assert capsys.readouterr().err == (
        "vertex.project: not set, and vertex requires it; set the Google Cloud project of runs\n"
    )
