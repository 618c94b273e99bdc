"""The baseline, the model that is served: of the local engine in real runs, and as a component."""

import shutil

import pytest
from tfx.dsl.component.experimental.annotations import InputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.types import Channel
from tfx.types.standard_artifacts import Model
from tfx.utils import path_utils

from components.baseline import PushedBaseline, ServedBaseline, existing_model
from components.serving_folder import ServingFolder
from core.errors import InputError
from pipeline.config import load_config
from pipeline.destinations import destination_json
from serving.identity import identity
from tests.serving.models import push

pytestmark = pytest.mark.slow


COMPARED = []
"""The baseline of each run, an artifact or None."""


@component
def Compare(candidate: InputArtifact[Model], model: InputArtifact[Model] = None):
    COMPARED.append(model)


class Runs:
    """Runs of one pipeline, in each of which a candidate is compared and pushed."""

    def __init__(self, folder):
        self.folder = folder
        self.serving = folder / "serving"
        config = load_config("sample", [f"paths.serving={self.serving}"], {})
        self.destination = destination_json(config)
        self.models = {}
        for number, name in enumerate("abcd"):
            push(folder / name / "Format-Serving", 0.9 + number / 100)
            self.models[identity(str(folder / name / "Format-Serving"))] = name
        self.store = folder / "mlmd.sqlite"

    def run(self, name, *, pushes=True):
        """Run the pipeline; return the name of the candidate's baseline, or None."""
        model = self.baseline(name, pushes=pushes)
        inputs = existing_model({"model": [model]} if model else {}, "model")
        if not inputs:
            return None
        return self.models[identity(path_utils.serving_model_path(model.uri))]

    def baseline(self, name, *, pushes=True):
        """Run the pipeline; return the artifact of the candidate's baseline, or None."""
        importer = Importer(str(self.folder / name), Model, reimport=False).with_id("Candidate")
        candidate = importer.outputs["result"]
        baseline = Resolver(
            strategy_class=ServedBaseline,
            config={"destination": self.destination, "copies": str(self.folder / "copies")},
            model=Channel(type=Model),
            candidate=candidate,
        ).with_id("Baseline")
        compare = Compare(candidate=candidate, model=baseline.outputs["model"])
        LocalDagRunner().run(
            Pipeline(
                pipeline_name="small",
                pipeline_root=str(self.folder / "root"),
                components=[importer, baseline, compare],
                metadata_connection_config=sqlite_metadata_connection_config(str(self.store)),
            )
        )
        if pushes:
            model = str(self.folder / name / "Format-Serving")
            ServingFolder(str(self.serving)).push(model, str(self.folder / "pushed"))
        return COMPARED.pop()

    def newest(self):
        return max(self.serving.iterdir(), key=lambda version: int(version.name))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_the_baseline_is_the_newest_version_in_the_serving_folder(runs):
    assert runs.run("a") is None
    assert runs.run("b") == "a"
    # The same artifact as in the first run, pushed once more.
    assert runs.run("a") == "b"
    assert runs.run("c") == "a"
    # After the newest version is deleted, the version before it is served.
    shutil.rmtree(runs.newest())
    assert runs.run("c", pushes=False) == "a"
    # Somebody rolls back by a copy.
    (b,) = [v for v in runs.serving.iterdir() if runs.models[identity(str(v))] == "b"]
    shutil.copytree(b, runs.serving / str(int(runs.newest().name) + 5))
    assert runs.run("c", pushes=False) == "b"


def test_after_a_rollback_the_baseline_is_what_is_served(runs):
    runs.run("a")
    runs.run("b")
    ServingFolder(str(runs.serving)).roll_back()
    # An unchanged run is not compared with the model that was rolled back.
    assert runs.run("a") is None
    assert runs.run("c") == "a"


def test_after_a_rollback_by_two_versions_the_one_between_is_no_baseline(runs):
    for name in "abc":
        runs.run(name)
    destination = ServingFolder(str(runs.serving))
    destination.roll_back(destination.pushed_models()[-1].name)
    assert runs.run("d") == "a"


def test_an_unchanged_run_has_the_same_baseline(runs):
    runs.run("a")
    first, again = runs.baseline("b"), runs.baseline("b")
    assert (again.id, again.uri) == (first.id, first.uri)
    # The copy of the baseline is made again if a clean-up has deleted it.
    shutil.rmtree(first.uri)
    assert runs.run("b") == "a"


def test_the_baseline_needs_nothing_of_the_run_that_pushed_it(runs):
    runs.run("a")
    shutil.rmtree(runs.folder / "a")
    runs.store.unlink()
    assert runs.run("b") == "a"


def test_a_model_that_is_replaced_under_its_number_is_another_baseline(runs):
    runs.run("a")
    first = runs.baseline("b", pushes=False)
    shutil.rmtree(runs.newest())
    version = runs.serving / first.get_string_custom_property("baseline").split()[1]
    shutil.copytree(runs.folder / "c" / "Format-Serving", version)
    second = runs.baseline("b", pushes=False)
    assert runs.models[identity(path_utils.serving_model_path(second.uri))] == "c"
    # Another artifact, because the Evaluator would be a cache hit with the same one.
    assert second.id != first.id and second.uri != first.uri


def test_an_incomplete_version_is_not_served_and_a_damaged_one_is_an_error(runs):
    runs.run("a")
    runs.run("b")
    (runs.newest() / "saved_model.pb").rename(runs.folder / "saved_model.pb")
    assert runs.run("c", pushes=False) == "a"
    (runs.folder / "saved_model.pb").rename(runs.newest() / "saved_model.pb")
    [data] = runs.newest().glob("variables/*.data-*")
    data.write_bytes(b"")
    # TFX hides the exception of a Resolver, so the step that uses the baseline raises it.
    with pytest.raises(InputError, match=f"{runs.newest()} is damaged, .* delete this folder"):
        runs.run("c", pushes=False)
    shutil.rmtree(runs.newest())
    assert runs.run("c", pushes=False) == "a"


def test_a_serving_folder_that_cannot_be_read_is_an_error(runs):
    runs.serving.touch()
    with pytest.raises(InputError, match=f"{runs.serving} is unknown: .* Not a directory"):
        runs.run("a", pushes=False)


@pytest.mark.parametrize(
    ("serving", "candidate", "expected"),
    [
        ({"9": "a", "10": "b"}, "c", "b"),
        ({"2": "c"}, "c", None),
        # A warm start has no candidate.
        ({"1": "a", "2": "c"}, None, "c"),
    ],
)
def test_the_component_finds_the_newest_model_that_is_not_the_candidate(
    runs, serving, candidate, expected
):
    for version, name in serving.items():
        shutil.copytree(runs.folder / name / "Format-Serving", runs.serving / version)
    model, given = Model(), Model()
    model.uri, given.uri = str(runs.folder / "out"), str(runs.folder / "c")
    PushedBaseline.test_call(
        destination=runs.destination, model=model, candidate=given if candidate else None
    )
    inputs = existing_model({"model": [model], "other": []}, "model")
    assert ("model" in inputs, "other" in inputs) == (expected is not None, True)
    if expected:
        saved = runs.folder / "out" / "Format-Serving"
        assert runs.models[identity(str(saved))] == expected
