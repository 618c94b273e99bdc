"""The list of nodes that is shown before TFX is loaded is that of the DAG."""

import json

import pytest

from cli.init import create_project
from core.errors import InputError
from pipeline import selected_nodes
from pipeline.config import Data, PipelineConfig, load_config
from pipeline.pipeline import create_pipeline
from pipeline.selected_nodes import node_ids
from platforms.local.platform import Local

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"training": {"warm_start": True, "tuner_trials": 2}, "push": {"destination": "none"}},
    ],
)
def test_the_nodes_are_those_of_the_pipeline_in_its_order(tmp_path, sections):
    config = PipelineConfig.model_validate({"paths": {"root": str(tmp_path)}, **sections})
    # TFX sorts the nodes by their dependencies, and runs them in this order.
    nodes = create_pipeline(config, Local(config)).components
    assert [node.id for node in nodes] == node_ids(config)


def test_a_component_that_is_built_and_not_listed_is_an_error(tmp_path, monkeypatch):
    config = PipelineConfig.model_validate({"paths": {"root": str(tmp_path)}})
    # No component reads an output of DataGate.
    listed = tuple(name for name in selected_nodes.NODES if name != "DataGate")
    monkeypatch.setattr(selected_nodes, "NODES", listed)
    with pytest.raises(ValueError, match="the node DataGate is built, but"):
        create_pipeline(config, Local(config))


def test_the_trainer_has_all_its_settings_and_inputs(tmp_path):
    training = {"warm_start": True, "tuner_trials": 2, "epochs": 7, "early_stopping": 3}
    config = PipelineConfig.model_validate({"paths": {"root": str(tmp_path)}, "training": training})
    nodes = {node.id: node for node in create_pipeline(config, Local(config)).components}
    assert {"WarmStartModel", "Tuner"} <= nodes.keys()
    trainer = nodes["Trainer"]
    sources = {name: channel.producer_component_id for name, channel in trainer.inputs.items()}
    assert sources == {
        "examples": "Transform",
        "transform_graph": "Transform",
        "base_model": "WarmStartModel",
        "hyperparameters": "Tuner",
    }
    for node in (trainer, nodes["Tuner"]):
        custom = json.loads(node.exec_properties["custom_config"])
        assert custom["training"] == json.loads(config.training.model_dump_json())
        assert custom["checkpoints"] == config.paths.checkpoints
        assert custom["has_spans"] is False
    assert (trainer.exec_properties["epochs"], trainer.exec_properties["strategy"]) == (7, "auto")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "a.csv").write_text("rating,text\n5,good\n")
    config = config.model_copy(update={"data": Data(input_base=f"{tmp_path}/{{SPAN}}")})
    [trainer] = [
        node for node in create_pipeline(config, Local(config)).components if node.id == "Trainer"
    ]
    assert json.loads(trainer.exec_properties["custom_config"])["has_spans"] is True


def test_a_training_of_n_grams_has_the_limit_of_its_static_shapes(tmp_path):
    settings = {
        "paths": {"root": str(tmp_path)},
        "training": {"model": "ngram_linear", "strategy": "one_device", "jit_compile": True},
    }
    custom = {}
    for words in (7, 500):
        config = PipelineConfig.model_validate(settings | {"transform": {"max_tokens": words}})
        custom[words] = {
            node.id: json.loads(node.exec_properties["custom_config"])
            for node in create_pipeline(config, Local(config)).components
            if node.id in ("Transform", "Trainer")
        }
    assert custom[7]["Trainer"]["transform"]["max_tokens"] == 7
    assert custom[500]["Trainer"]["transform"]["max_tokens"] == 500
    # The n-grams of a text do not depend on it.
    assert custom[7]["Transform"] == custom[500]["Transform"]


def test_the_input_is_a_part_of_the_cache_key(tmp_path):
    reviews = tmp_path / "reviews.csv"
    reviews.write_text("1,bad\n")
    config = PipelineConfig.model_validate({"data": {"input_base": str(tmp_path)}})

    def key():
        [reader, *_] = create_pipeline(config, Local(config)).components
        return reader.exec_properties["options"]

    before = key()
    assert key() == before
    reviews.write_text("1,bad\n2,good\n")
    assert key() != before


@pytest.mark.parametrize(
    ("labels", "named", "problem"),
    [
        ("{}", "postive", "no class is called 'postive', did you mean positive\\?"),
        ("{a: Refund, b: Card}", "refund", "no class is called 'refund', did you mean Refund\\?"),
        ("{a: Refund, b: Card}", "x", "no class is called 'x', known are Refund, Card"),
        # Only the files have the classes.
        ("each", "x", None),
    ],
)
def test_a_setting_that_names_an_unknown_class_is_an_error_before_the_run(
    tmp_path, labels, named, problem
):
    words = [f"paths.root={tmp_path}", f"data.labels={labels}"]
    words.append(f"evaluation.min_class_recall={{{named}: 0.5}}")
    settings = load_config(overrides=words)
    if problem is None:
        create_pipeline(settings, Local(settings))
        return
    with pytest.raises(InputError, match=f"^evaluation.min_class_recall: {problem}$"):
        create_pipeline(settings, Local(settings))


def test_a_broken_component_of_a_project_is_one_line_with_its_line(tmp_path):
    create_project(tmp_path / "mine")
    file = tmp_path / "mine" / "components" / "my_component.py"
    text = file.read_text()
    returned = "return ClassShares(examples=outputs.examples)"
    config = load_config(str(tmp_path / "mine" / "mine.yaml"), environ={})
    for before, after, at, message in [
        ("_BATCH = 1024", "_BATCH = 0 / 0", "_BATCH", "ZeroDivisionError: division by zero"),
        ("def create(", "def make(", "", "create is missing; each component of a project"),
        (returned, "return", "def create(", "create returns a NoneType, not a component"),
        ("outputs.examples)", "outputs.texts)", "return Class", "AttributeError: 'Outputs' object"),
    ]:
        file.write_text(text.replace(before, after, 1))
        line = 1 + text[: text.index(at)].count("\n")
        with pytest.raises(InputError) as error:
            create_pipeline(config, Local(config))
        assert str(error.value).startswith(f"components/my_component.py, line {line}: {message}")


def test_a_changed_model_of_a_project_changes_the_code_of_the_trainer_alone(tmp_path):
    create_project(tmp_path / "mine")
    config = load_config(str(tmp_path / "mine" / "mine.yaml"), environ={})

    def codes():
        nodes = create_pipeline(config, Local(config)).components
        return {node.id: node.exec_properties.get("code") for node in nodes}

    before = codes()
    with (tmp_path / "mine" / "models" / "my_model.py").open("a") as file:
        file.write("# changed\n")
    after = codes()
    assert [name for name in after if after[name] != before[name]] == ["Trainer"]
