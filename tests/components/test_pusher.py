"""VersionPusher: the pushed model is the newest version, and complete."""

import shutil
import time
from pathlib import Path

import pytest
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts

from components.pusher import ROLLED_BACK, ServingFolder, VersionPusher
from core.errors import InputError
from pipeline.config import load_config
from pipeline.destinations import destination_of
from serving.identity import identity
from serving.versions import versions
from tests.serving.models import push as save

pytestmark = pytest.mark.slow


def push_model(model, artifact, destination, lacks=""):
    """Run the component on a model without one of its blessings; return the PushedModel."""
    given, pushed = standard_artifacts.Model(), standard_artifacts.PushedModel()
    given.uri, pushed.uri = str(model), str(artifact)
    blessings = {
        "model_blessing": standard_artifacts.ModelBlessing(),
        "infra_blessing": standard_artifacts.InfraBlessing(),
    }
    for key, blessing in blessings.items():
        blessing.set_int_custom_property("blessed", int(key != lacks))
    VersionPusher.test_call(model=given, pushed_model=pushed, destination=destination, **blessings)
    return pushed


class Pushes:
    def __init__(self, folder):
        self.folder = folder
        self.serving = folder / "serving"
        for number, name in enumerate("abc"):
            save(folder / name / "Format-Serving", 0.9 + number / 100)

    def push(self, name, *, lacks=""):
        """Push a model; return the artifact."""
        config = load_config("sample", [f"paths.serving={self.serving}"], {})
        return push_model(
            self.folder / name, self.folder / "artifact", destination_of(config), lacks
        )

    def served(self):
        """Return the name of the model in the newest version, and the number of versions."""
        newest = identity(next(versions(str(self.serving))))
        models = {identity(str(self.folder / name / "Format-Serving")): name for name in "ab"}
        return models[newest], len(list(self.serving.iterdir()))


@pytest.fixture
def pushes(tmp_path):
    return Pushes(tmp_path)


@pytest.mark.parametrize("later", [0, -1000], ids=["same second", "clock went back"])
def test_a_second_push_is_the_newest_version_whatever_the_clock_says(pushes, monkeypatch, later):
    monkeypatch.setattr(time, "time", lambda: 1_795_602_064.5)
    first = pushes.push("a")
    monkeypatch.setattr(time, "time", lambda: 1_795_602_064.5 + later)
    second = pushes.push("b")
    assert first.get_string_custom_property("pushed_version") == "1795602064"
    assert second.get_string_custom_property("pushed_version") == "1795602065"
    newest = next(versions(str(pushes.serving)))
    # The step was killed after the copy, or an orchestrator without a cache repeats it.
    for pushed in (second, pushes.push("b")):
        assert pushed.get_int_custom_property("pushed") == 1
        assert pushed.get_string_custom_property("pushed_destination") == newest
    assert pushes.served() == ("b", 2)


def test_a_version_that_somebody_copies_is_not_touched(pushes):
    incomplete = pushes.serving / str(time.time_ns())
    (incomplete / "variables").mkdir(parents=True)
    # TensorFlow Serving ignores a folder with a greater number.
    (pushes.serving / str(2**63)).mkdir()
    pushed = pushes.push("a")
    assert int(pushed.get_string_custom_property("pushed_version")) == int(incomplete.name) + 1
    assert list(incomplete.iterdir()) == [incomplete / "variables"]


@pytest.mark.parametrize("stage", ["variables", "saved_model.pb"])
def test_a_killed_push_is_never_served_and_can_be_repeated(pushes, monkeypatch, stage):
    pushes.push("a")
    copy = fileio.copy

    def kill(source, target, overwrite=False):
        if stage in source:
            Path(target).write_bytes(b"half")
            raise KeyboardInterrupt
        copy(source, target, overwrite=overwrite)

    with monkeypatch.context() as killed:
        killed.setattr(fileio, "copy", kill)
        with pytest.raises(KeyboardInterrupt):
            pushes.push("b")
    assert pushes.served() == ("a", 2)
    pushes.push("b")
    assert pushes.served() == ("b", 3)


@pytest.mark.parametrize("lacks", ["model_blessing", "infra_blessing"])
def test_without_a_blessing_nothing_is_pushed(pushes, lacks):
    assert pushes.push("a", lacks=lacks).get_int_custom_property("pushed") == 0
    assert not pushes.serving.exists()


def test_a_rollback_can_be_undone_and_repeated(pushes):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")

    def back(name=None):
        """Roll back; return the versions that are served and rolled back now."""
        chosen = folder.roll_back(name)
        assert folder.served().name == chosen.name
        assert identity(next(versions(folder.place))) == chosen.content
        found = folder.pushed_models()
        return chosen.name, {model.name for model in found if model.state == ROLLED_BACK}

    assert back() == (a, {b})
    with pytest.raises(InputError, match="no earlier model was pushed"):
        back()
    with pytest.raises(InputError, match=f"the model is version {b} .* was rolled back"):
        pushes.push("b")
    pushes.push("a")
    assert pushes.served() == ("a", 3)
    assert back(b) == (b, {a})
    with pytest.raises(InputError, match=f"version {b} is served already"):
        back(b)
    assert back() == (a, {b})
    c = pushes.push("c").get_string_custom_property("pushed_version")
    assert back() == (a, {b, c})
    # A copy is no version of its own, unless somebody deletes the original.
    copy = next(versions(folder.place))
    with pytest.raises(InputError, match="no version"):
        back(Path(copy).name)
    shutil.rmtree(pushes.serving / a)
    assert folder.served().content == identity(copy)


def test_a_run_that_returns_to_earlier_settings_pushes_no_second_model(pushes):
    _, b, again = (pushes.push(name).get_string_custom_property("pushed_version") for name in "aba")
    models = ServingFolder(str(pushes.serving)).pushed_models()
    assert [(model.name, model.state) for model in models] == [(again, "served"), (b, "")]
    assert ServingFolder(str(pushes.serving)).roll_back().name == b
