"""VersionPusher: the pushed model is the newest version, and complete."""

import shutil
import time
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts
from tfx.utils import io_utils
from typer.testing import CliRunner

from cli.app import app
from components.destination import ROLLED_BACK
from components.pusher import VersionPusher
from components.serving_folder import ServingFolder
from core.digests import DIGESTS, is_unchanged
from core.errors import InputError
from pipeline.config import load_config
from pipeline.destinations import destination_json
from platforms.local.run import served_as
from preprocessing.labels import LABELS_FILE, Labels, write_labels
from serving.drift.reference import KEPT_FILE, REFERENCE_FILE
from serving.identity import identity
from serving.versions import versions
from tests.serving.models import push as save

pytestmark = pytest.mark.slow


def push_model(model, artifact, destination, lacks="", keep_reviews=1):
    """Run the component on a model without one of its blessings; return the PushedModel."""
    given, pushed = standard_artifacts.Model(), standard_artifacts.PushedModel()
    given.uri, pushed.uri = str(model), str(artifact)
    blessings = {
        "model_blessing": standard_artifacts.ModelBlessing(),
        "infra_blessing": standard_artifacts.InfraBlessing(),
    }
    for key, blessing in blessings.items():
        blessing.set_int_custom_property("blessed", int(key != lacks))
    evaluation = standard_artifacts.ModelEvaluation()
    evaluation.uri = str(Path(model) / "evaluation")
    VersionPusher.test_call(
        model=given,
        evaluation=evaluation,
        pushed_model=pushed,
        destination=destination,
        keep_reviews=keep_reviews,
        **blessings,
    )
    return pushed


class Pushes:
    def __init__(self, folder):
        self.folder = folder
        self.serving = folder / "serving"
        for number, name in enumerate("abc"):
            save(folder / name / "Format-Serving", 0.9 + number / 100)

    def push(self, name, *, lacks="", keep_reviews=1):
        """Push a model; return the artifact."""
        config = load_config("sample", [f"paths.serving={self.serving}"], {})
        destination = destination_json(config)
        return push_model(
            self.folder / name, self.folder / "artifact", destination, lacks, keep_reviews
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


def test_the_list_has_the_day_of_a_push_only_if_the_version_is_a_time(pushes):
    pushes.push("a")
    [version] = pushes.serving.iterdir()
    names = ("7", version.name, "20261130235959", str(2**63 - 1))
    for name, probability in zip(names, (0.1, None, 0.2, 0.3), strict=True):
        if probability:
            save(pushes.serving / name, probability)
    words = ["models", "--set", f"paths.root={pushes.folder}"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"}, catch_exceptions=False)
    lines = result.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(reversed(names))
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(int(version.name)))
    assert [" ".join(line.split()[1:3]) for line in lines] == ["– –", "– –", day, "– –"]


def test_nothing_is_pushed_after_the_greatest_version(pushes):
    pushes.push("a")
    (pushes.serving / str(2**63 - 1)).mkdir()
    with pytest.raises(InputError, match=f"{2**63 - 1} has the greatest number of a version"):
        pushes.push("b")
    assert pushes.served() == ("a", 2)


def test_a_file_whose_name_is_a_number_is_no_version(pushes):
    pushes.push("a")
    (pushes.serving / str(2**62)).touch()
    assert pushes.served() == ("a", 2)


@pytest.mark.parametrize("stage", ["variables", "saved_model.pb"])
def test_a_killed_push_is_never_served_and_can_be_repeated(pushes, monkeypatch, stage):
    pushes.push("a")
    copy = fileio.copy

    def kill(source, target, overwrite=False):
        if stage in source and target.startswith(str(pushes.serving)):
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


def test_a_push_whose_artifact_cannot_be_written_serves_no_other_model(pushes):
    """On a disk that has space for one copy, the run fails and the served model stays."""
    pushes.push("a")
    artifact = pushes.folder / "artifact"
    shutil.rmtree(artifact)
    artifact.write_text("no folder")
    with pytest.raises((OSError, tf.errors.OpError)):
        pushes.push("b")
    assert pushes.served() == ("a", 1)
    artifact.unlink()
    pushes.push("b")
    assert pushes.served() == ("b", 2)


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
        assert identity(next(versions(folder.location))) == chosen.content
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
    copy = Path(next(versions(folder.location))).name
    assert copy in folder.served().copies
    with pytest.raises(InputError, match=f"version {copy} is served already"):
        back(copy)
    back(c)
    # The number of the copy, which a server named, is as good as that of the original.
    assert back(copy) == (a, {b, c})
    shutil.rmtree(pushes.serving / a)
    assert folder.served().name != a
    assert identity(folder.folder(folder.served().name)) == identity(str(pushes.serving / copy))


def test_a_model_is_served_whichever_run_pushed_it(pushes):
    folder = ServingFolder(str(pushes.serving))
    models = {name: str(pushes.folder / name) for name in "ab"}
    assert served_as(folder, models["a"]) == ""
    a, _ = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    assert served_as(folder, models["a"]) == ""
    folder.roll_back()
    assert [served_as(folder, models[name]) for name in "ab"] == [a, ""]
    assert served_as(folder, str(pushes.folder / "deleted")) == ""


@pytest.mark.parametrize("lost", ["", "variables"], ids=["deleted", "damaged"])
def test_a_deleted_or_damaged_model_stays_rolled_back(pushes, lost):
    folder = ServingFolder(str(pushes.serving))
    a, b, c = (pushes.push(name).get_string_custom_property("pushed_version") for name in "abc")
    folder.roll_back(a)
    shutil.rmtree(pushes.serving / c / lost)
    # The version before it was not rolled back.
    states = [(model.name, model.state) for model in folder.pushed_models() if model.name != c]
    assert states == [(b, ""), (a, "served")]
    with pytest.raises(InputError, match=f"was version {c} in .*rolled back.* delete ") as refused:
        pushes.push("c")
    Path(str(refused.value).rpartition(" delete ")[2]).unlink()
    pushes.push("c")
    assert folder.served().content == identity(str(pushes.folder / "c" / "Format-Serving"))


def test_a_rollback_to_the_copy_of_a_rollback_names_the_model_that_it_replaces(pushes):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    folder.roll_back(a)
    shutil.rmtree(pushes.serving / a)
    c = pushes.push("c").get_string_custom_property("pushed_version")
    folder.roll_back()
    states = {model.name: model.state for model in folder.pushed_models()}
    assert states == {**dict.fromkeys((b, c), ROLLED_BACK), folder.served().name: "served"}
    shutil.rmtree(pushes.serving / c)
    with pytest.raises(InputError, match=f"the model was version {c} "):
        pushes.push("c")


def test_a_rollback_of_an_earlier_release_replaced_the_version_before_it(pushes):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    folder.roll_back(a)
    mark = next(pushes.serving.glob("*/assets.extra/rollback.txt"))
    mark.write_text(f"a copy of version {a}\n")
    states = [(model.name, model.state) for model in folder.pushed_models()]
    assert states == [(b, ROLLED_BACK), (a, "served")]


DAMAGES = {
    "no variables": lambda version: shutil.rmtree(version / "variables"),
    "no weights": lambda version: next(version.glob("variables/*.data-*")).unlink(),
    "no index": lambda version: (version / "variables" / "variables.index").unlink(),
    "empty graph": lambda version: (version / "saved_model.pb").write_bytes(b""),
    "half a graph": lambda version: _halve(version / "saved_model.pb"),
    "half the weights": lambda version: _halve(next(version.glob("variables/*.data-*"))),
    "other weights": lambda version: _turn(next(version.glob("variables/*.data-*"))),
    "classes of another model": lambda version: _replace_classes(version),
    "no signature": lambda version: tf.saved_model.save(tf.Module(), str(version)),
}


def _halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _replace_classes(version):
    (version / "assets").mkdir(exist_ok=True)
    write_labels(str(version / "assets"), Labels(("a", "b", "c")))
    (version / DIGESTS).unlink()  # it lacks the file, because this small model has none


def _turn(file):
    file.write_bytes(bytes(255 - byte for byte in file.read_bytes()))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_version_that_cannot_be_loaded_is_not_served_again(pushes, damage):
    folder = ServingFolder(str(pushes.serving))
    a, b, c = (pushes.push(name).get_string_custom_property("pushed_version") for name in "abc")
    damage(pushes.serving / b)
    files = sorted(pushes.serving.rglob("*"))
    with pytest.raises(InputError, match=f"version {b} cannot be loaded: .*; nothing was changed"):
        folder.roll_back(b)
    assert sorted(pushes.serving.rglob("*")) == files
    assert folder.served().name == c
    # By default the next earlier one that loads.
    passed_over = []
    assert folder.roll_back(None, passed_over.append).name == a
    [line] = passed_over
    assert line.startswith(f"version {b} cannot be loaded: ")
    shutil.rmtree(pushes.serving / a / "variables")
    with pytest.raises(InputError, match=f"version {b} cannot be loaded"):
        folder.roll_back(b)


def test_a_version_that_cannot_be_read_now_is_not_passed_over(pushes, monkeypatch):
    """An older model in its place would be served until the next rollback."""
    folder = ServingFolder(str(pushes.serving))
    for name in "abc":
        pushes.push(name)
    files = sorted(pushes.serving.rglob("*"))

    def fail(path):
        raise tf.errors.UnavailableError(None, None, "the bucket does not respond")

    monkeypatch.setattr(tf.saved_model, "load", fail)
    with pytest.raises(tf.errors.UnavailableError):
        folder.roll_back()
    assert sorted(pushes.serving.rglob("*")) == files


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_the_served_version_is_the_newest_that_loads(pushes, damage):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    damage(pushes.serving / b)
    states = [(model.name, model.state) for model in folder.pushed_models()]
    assert states == [(b, "damaged"), (a, "served")]
    # A run that trains the damaged model pushes it once more.
    again = pushes.push("b").get_string_custom_property("pushed_version")
    assert (again != b, folder.served().name) == (True, again)


def test_if_no_version_loads_all_are_damaged(pushes):
    folder = ServingFolder(str(pushes.serving))
    for name in "ab":
        version = pushes.push(name).get_string_custom_property("pushed_version")
        DAMAGES["other weights"](pushes.serving / version)
    assert [model.state for model in folder.pushed_models()] == ["damaged", "damaged"]
    assert folder.served() is None


CLASSES = {
    "missing": lambda file: file.unlink(),
    "cut off": lambda file: _halve(file),
    # TensorFlow loads the model with them, and each answer has a wrong name.
    "in another order": lambda file: write_labels(str(file.parent), Labels(("bug", "billing"))),
}


@pytest.mark.parametrize("damage", CLASSES.values(), ids=list(CLASSES))
def test_a_version_without_its_classes_is_damaged(pushes, damage):
    folder = ServingFolder(str(pushes.serving))
    for name in "ab":
        model = pushes.folder / name / "Format-Serving"
        (model / "assets").mkdir(exist_ok=True)
        write_labels(str(model / "assets"), Labels(("billing", "bug")))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    damage(pushes.serving / b / "assets" / LABELS_FILE)
    states = [(model.name, model.state) for model in folder.pushed_models()]
    assert states == [(b, "damaged"), (a, "served")]
    with pytest.raises(InputError, match=f"version {b} cannot be loaded: .*{LABELS_FILE}"):
        folder.roll_back(b)


def test_the_versions_of_a_folder_that_was_moved_are_those_of_their_runs(pushes, tmp_path):
    pushed = pushes.push("a")
    location = pushed.get_string_custom_property("pushed_destination")
    version = pushed.get_string_custom_property("pushed_version")
    pushes.serving.rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to("moved")
    for name in ("moved", "link"):
        assert ServingFolder(str(tmp_path / name)).find_name(location) == version
    assert ServingFolder(str(tmp_path / "other")).find_name(location) is None


def test_nothing_is_pushed_into_a_version(pushes):
    version = pushes.push("a").get_string_custom_property("pushed_destination")
    inside = ServingFolder(version)
    for use in (inside.newest, lambda: inside.push(str(pushes.folder / "b"), "unused")):
        with pytest.raises(InputError):
            use()
    with pytest.raises(InputError, match=f"itself a model; set .* contains it, {pushes.serving}$"):
        inside.newest()


def test_a_damaged_version_between_two_others_is_no_replaced_model(pushes):
    folder = ServingFolder(str(pushes.serving))
    a, b, c = (pushes.push(name).get_string_custom_property("pushed_version") for name in "abc")
    folder.roll_back(a)
    shutil.rmtree(pushes.serving / c / "variables")
    states = [(model.name, model.state) for model in folder.pushed_models()]
    assert states == [(c, "damaged"), (b, ""), (a, "served")]


@pytest.mark.parametrize("stage", ["rollback.txt", "variables", "SHA256SUMS", "saved_model.pb"])
def test_a_killed_rollback_changes_nothing_and_a_rerun_completes_it(pushes, monkeypatch, stage):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    copy, write = fileio.copy, io_utils.write_string_file

    def copied(source, target, overwrite=False):
        if stage in source:
            Path(target).write_bytes(b"half")
            raise KeyboardInterrupt
        copy(source, target, overwrite=overwrite)

    def written(file, text):
        write(file, text)
        if stage in file:
            raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(fileio, "copy", copied)
        killed.setattr(io_utils, "write_string_file", written)
        with pytest.raises(KeyboardInterrupt):
            folder.roll_back()
    assert [(m.name, m.state) for m in folder.pushed_models()] == [(b, "served"), (a, "")]
    assert folder.roll_back().name == a
    assert [(m.name, m.state) for m in folder.pushed_models()] == [(b, ROLLED_BACK), (a, "served")]


def test_a_copy_that_differs_from_its_original_is_never_served(pushes, monkeypatch):
    folder = ServingFolder(str(pushes.serving))
    _, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    copy = fileio.copy

    def full(source, target, overwrite=False):
        copy(source, target, overwrite=overwrite)
        if ".data-" in source:
            _halve(Path(target))

    before = sorted(pushes.serving.iterdir())
    with monkeypatch.context() as disk:
        disk.setattr(fileio, "copy", full)
        with pytest.raises(OSError, match=r"differs from .* after the copy"):
            folder.roll_back()
        with pytest.raises(OSError, match=r"differs from .* after the copy"):
            pushes.push("c")
    assert folder.served().name == b
    assert sorted(pushes.serving.iterdir()) == before


def test_a_version_keeps_the_reviews_of_its_evaluation_also_after_a_rollback(pushes):
    for name in "ab":
        file = pushes.folder / name / "evaluation" / REFERENCE_FILE
        file.parent.mkdir()
        file.write_text(f"reviews of {name}")
        pushes.push(name)
    ServingFolder(str(pushes.serving)).roll_back()
    kept = [Path(version, KEPT_FILE) for version in versions(str(pushes.serving))]
    assert [file.read_text()[-1] for file in kept] == ["a", "b", "a"]
    assert all(map(is_unchanged, versions(str(pushes.serving))))


def test_a_model_that_was_pushed_without_reviews_gets_them_from_the_next_run(pushes):
    pushes.push("a")
    [version] = versions(str(pushes.serving))
    assert not Path(version, KEPT_FILE).exists()
    file = pushes.folder / "a" / "evaluation" / REFERENCE_FILE
    file.parent.mkdir()
    file.write_text("reviews")
    pushes.push("a", keep_reviews=0)
    assert not Path(version, KEPT_FILE).exists()
    pushes.push("a")
    assert list(versions(str(pushes.serving))) == [version]
    assert Path(version, KEPT_FILE).read_text() == "reviews"


def test_a_candidate_without_files_is_not_pushed(pushes):
    shutil.rmtree(pushes.folder / "a" / "Format-Serving" / "variables")
    with pytest.raises(InputError, match=r"is damaged \(variables/ is missing\); run once "):
        pushes.push("a")
    assert not pushes.serving.exists()


def test_a_run_that_returns_to_earlier_settings_pushes_no_second_model(pushes):
    _, b, again = (pushes.push(name).get_string_custom_property("pushed_version") for name in "aba")
    models = ServingFolder(str(pushes.serving)).pushed_models()
    assert [(model.name, model.state) for model in models] == [(again, "served"), (b, "")]
    assert ServingFolder(str(pushes.serving)).roll_back().name == b


@pytest.mark.parametrize("damage", ["a shard that does not exist", "digests that were cut off"])
def test_a_version_whose_listed_files_are_unchanged_may_be_damaged(pushes, damage):
    folder = ServingFolder(str(pushes.serving))
    a, b = (pushes.push(name).get_string_custom_property("pushed_version") for name in "ab")
    newest = pushes.serving / b
    if damage == "a shard that does not exist":
        (newest / "variables" / "variables.data-00000-of-00003").touch()
    else:
        sums = newest / "assets.extra" / "SHA256SUMS"
        [model] = [line for line in sums.read_text().splitlines() if "saved_model.pb" in line]
        sums.write_text(f"{model}\n")
        shutil.rmtree(newest / "variables")
    states = [(model.name, model.state) for model in folder.pushed_models()]
    assert states == [(b, "damaged"), (a, "served")]
