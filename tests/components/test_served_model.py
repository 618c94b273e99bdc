"""The baseline of the local engine: the model that is served, or that was blessed last."""

import shutil

import pytest
from tfx.types.standard_artifacts import InfraBlessing, Model, ModelBlessing
from tfx.utils import path_utils

from components.baseline import ServedBaseline, existing_model
from components.saved_models import identity
from core.errors import InputError
from serving.versions import next_version
from tests.serving.models import push

pytestmark = pytest.mark.slow


class Runs:
    """Runs of one pipeline, in each of which a candidate is blessed and pushed.

    `known` has the artifacts that ML Metadata lists.
    """

    def __init__(self, folder):
        self.folder, self.serving = folder, folder / "serving"
        self.known = {"model": [], "model_blessing": [], "infra_blessing": []}
        self.names, self.candidates = {}, {}
        for name in "abc":
            push(folder / name / "Format-Serving")
            self.names[identity(str(folder / name / "Format-Serving"))] = name
            self.candidates[name] = self.add("model", Model())
            self.candidates[name].uri = str(folder / name)

    def add(self, key, artifact):
        self.known[key].append(artifact)
        artifact.id = sum(map(len, self.known.values()))
        return artifact

    def run(self, name, **settings):
        """Run the pipeline; return the name of the candidate's baseline, or None."""
        model = self.baseline(name, **settings)
        return model and self.names[identity(path_utils.serving_model_path(model.uri))]

    def baseline(self, name, *, pushes=True, refuses=False):
        """Run the pipeline; return the artifact of the candidate's baseline, or None."""
        candidate = self.candidates[name]
        strategy = ServedBaseline(str(self.serving), str(self.folder / "copies"), pushes)
        found = strategy.resolve_artifacts(None, {**self.known, "candidate": [candidate]})
        for model in existing_model({"model": found["model"]}, "model")["model"]:
            if model not in self.known["model"]:
                self.add("model", model)
        for key, kind, blessed in (
            ("model_blessing", ModelBlessing, 1),
            ("infra_blessing", InfraBlessing, 1 - refuses),
        ):
            blessing = self.add(key, kind())
            blessing.set_int_custom_property("blessed", blessed)
            blessing.set_int_custom_property("current_model_id", candidate.id)
        if pushes:
            version = self.serving / str(next_version(str(self.serving)))
            shutil.copytree(f"{candidate.uri}/Format-Serving", version)
        return next(iter(found["model"]), None)

    def newest(self):
        return max(self.serving.iterdir(), key=lambda version: int(version.name))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_the_baseline_is_the_newest_version_in_the_serving_folder(runs):
    assert runs.run("a") is None
    assert runs.run("b") == "a"
    assert runs.run("a") == "b"
    assert runs.run("c") == "a"
    # After the newest version is deleted, the version before it is served.
    shutil.rmtree(runs.newest())
    assert runs.run("c", pushes=False) == "a"
    # Somebody rolls back by a copy.
    (b,) = [v for v in runs.serving.iterdir() if runs.names[identity(str(v))] == "b"]
    shutil.copytree(b, runs.serving / str(int(runs.newest().name) + 5))
    assert runs.run("c", pushes=False) == "b"


def test_an_unchanged_run_has_the_same_baseline(runs):
    runs.run("a")
    first = runs.baseline("b")
    again = runs.baseline("b")
    assert (again.id, again.uri) == (first.id, first.uri)
    # The copy of the baseline is made again if a clean-up has deleted it, and the metadata with it.
    shutil.rmtree(first.uri)
    shutil.rmtree(runs.folder / "a")
    runs.known["model"].clear()
    assert runs.run("b") == "a"


def test_a_model_that_is_replaced_under_its_number_is_another_baseline(runs):
    runs.run("a")
    first = runs.baseline("b", pushes=False)
    shutil.rmtree(runs.newest())
    version = runs.serving / first.get_string_custom_property("baseline").split()[1]
    shutil.copytree(runs.folder / "c" / "Format-Serving", version)
    assert runs.run("b", pushes=False) == "c"


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
    with pytest.raises(InputError, match=f"paths.serving: .*{runs.serving} cannot be .* Not a"):
        runs.run("a", pushes=False)


def test_without_pushes_the_baseline_is_the_model_that_was_blessed_last(runs):
    for name, baseline in (("a", None), ("b", "a"), ("a", "b"), ("c", "a")):
        assert runs.run(name, pushes=False) == baseline
    shutil.rmtree(runs.folder / "c")
    with pytest.raises(InputError, match=f"blessed last, {runs.folder}/c, is gone") as error:
        runs.run("a", pushes=False)
    # The remedy of the message.
    shutil.copytree(runs.folder / "b" / "Format-Serving", runs.serving / "1")
    assert f"copy a model to {runs.serving}/1" in str(error.value)
    assert runs.run("a", pushes=False) == "b"


def test_a_model_that_the_serving_check_refused_is_no_baseline(runs):
    assert runs.run("a", refuses=True, pushes=False) is None
    assert runs.run("b", pushes=False) is None
    assert runs.run("c", refuses=True, pushes=False) == "b"
    assert runs.run("a", pushes=False) == "b"
