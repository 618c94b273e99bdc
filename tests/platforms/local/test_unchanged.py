"""A run that would repeat the last one, and every change after which it would not."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.run_report import history
from core import code_version
from pipeline.config import load_config
from platforms.local import unchanged
from tests.loaded import run_command
from tests.outcomes import OUTCOME
from tests.platforms.local.store import Metadata

RUN = "2026-01-01T10:00:00"
WEIGHTS = "variables/variables.data-00000-of-00001"
NOT_LOADED = {"apache_beam", "keras", "kfp", "numpy", "pyarrow", "tensorflow", "tfx"}


class Finished:
    """A folder in the state after a run that pushed a model."""

    def __init__(self, folder):
        self.folder = folder
        self.inputs = folder / "reviews"
        self.reviews = self.inputs / "deep" / "reviews.txt"
        self.reviews.parent.mkdir(parents=True)
        self.reviews.write_text("__label__1 bad\n__label__2 good\n")
        self.linked = folder / "elsewhere.txt"
        self.linked.write_text("__label__1 worse\n")
        (self.inputs / "link.txt").symlink_to(self.linked)
        self.golden = folder / "golden.txt"
        self.golden.write_text("positive\tgood\n")
        self.model = folder / "runs" / "serving" / "7"
        self.model.mkdir(parents=True)
        for name in (MODEL_FILE, INDEX, WORDS, WEIGHTS):
            (self.model / name).parent.mkdir(exist_ok=True)
            (self.model / name).write_text("content")
        self.artifact = folder / "Trainer"
        self.artifact.mkdir()
        self.report = folder / "runs" / "report.html"
        self.report.touch()
        self.metadata = Metadata(folder / "runs")
        self.store = self.metadata.store
        self.settings = (
            f"paths.root={folder}/runs",
            f"data.input_base={self.inputs}",
            f"serving_check.golden={self.golden}",
        )
        self.metadata.add_run(RUN, nodes=["Trainer"], folder=folder)
        compared = replace(OUTCOME, accuracy=0.9, baseline="version 6", accuracy_change=0.01)
        outcome = replace(compared, report=str(self.report), pushed_to=str(self.model))
        history.record_outcome(self.store, RUN, outcome)
        config = self.config()
        unchanged.record(self.store, RUN, config, unchanged.fingerprint(config))

    def config(self, *overrides):
        return load_config(None, [*self.settings, *overrides], environ={})


@pytest.fixture
def finished(tmp_path):
    return Finished(tmp_path)


def test_a_run_with_the_same_code_settings_and_input_is_unchanged(finished):
    assert unchanged.find_unchanged(finished.config()).id == RUN


@pytest.mark.parametrize(
    "override",
    [
        "training.epochs=7",
        "cache=false",
        "training.warm_start=true",
        "paths.serving=gs://bucket/serving",
        "data.input_base=null",
        f"paths.serving={__file__}",
    ],
)
def test_other_settings_are_a_change(finished, override):
    assert unchanged.find_unchanged(finished.config(override)) is None


@pytest.mark.parametrize("override", ["training.warm_start=true", "cache=false"])
def test_a_run_that_never_only_repeats_is_not_skipped_the_second_time(finished, override):
    config = finished.config(override)
    unchanged.record(finished.store, RUN, config, unchanged.fingerprint(config))
    assert unchanged.find_unchanged(config) is None


def test_a_serving_folder_that_cannot_be_read_does_not_fail_a_finished_run(finished, caplog):
    config = finished.config()
    serving = finished.model.parent
    shutil.rmtree(serving)
    serving.symlink_to(serving)
    unchanged.record(finished.store, RUN, config, unchanged.fingerprint(config))
    assert "The next run will not be skipped: " in caplog.text
    assert unchanged.find_unchanged(config) is None


MODEL_FILE, INDEX, WORDS = "saved_model.pb", "variables/variables.index", "assets/words"


def replace_with_the_same_time(path):
    """Reverse the characters of a file; its size and its time of modification stay."""
    times = path.stat()
    path.write_text(path.read_text()[::-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def mark_the_artifact(finished):
    [artifact] = finished.store.get_artifacts()
    artifact.state = mlmd.Artifact.MARKED_FOR_DELETION
    finished.store.put_artifacts([artifact])


CHANGES = {
    "input rewritten": lambda finished: replace_with_the_same_time(finished.reviews),
    "input behind a link": lambda finished: replace_with_the_same_time(finished.linked),
    "input renamed": lambda finished: finished.reviews.rename(finished.reviews.parent / "b.txt"),
    "input added": lambda finished: (finished.inputs / "more.txt").touch(),
    "input removed": lambda finished: finished.reviews.unlink(),
    "input folder removed": lambda finished: shutil.rmtree(finished.inputs),
    "link to a folder": lambda finished: (finished.inputs / "link").symlink_to(finished.folder),
    "golden sentences": lambda finished: finished.golden.write_text("negative\tbad\n"),
    "golden sentences removed": lambda finished: finished.golden.unlink(),
    "model pushed": lambda finished: shutil.copytree(finished.model, f"{finished.model}8"),
    "model replaced": lambda finished: replace_with_the_same_time(finished.model / MODEL_FILE),
    "index replaced": lambda finished: replace_with_the_same_time(finished.model / INDEX),
    "vocabulary replaced": lambda finished: replace_with_the_same_time(finished.model / WORDS),
    "model damaged": lambda finished: (finished.model / WEIGHTS).write_text("half"),
    "weights lost": lambda finished: shutil.rmtree(finished.model / "variables"),
    "model incomplete": lambda finished: (finished.model / "saved_model.pb").unlink(),
    "artifact deleted": lambda finished: finished.artifact.rmdir(),
    "artifact marked": mark_the_artifact,
    "report deleted": lambda finished: finished.report.unlink(),
    "another run": lambda finished: finished.metadata.add_run("2026-01-02T10:00:00"),
    "metadata deleted": lambda finished: (finished.folder / "runs/metadata.sqlite").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_other_change_is_found(finished, change):
    change(finished)
    assert unchanged.find_unchanged(finished.config()) is None


def test_a_copy_of_the_input_and_of_the_model_is_no_change(finished):
    for path in (finished.reviews, finished.linked, finished.model / MODEL_FILE):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    (finished.inputs / "README.md").write_text("no review")
    assert unchanged.find_unchanged(finished.config()).id == RUN


@pytest.mark.parametrize("file", ["cli/app.py", "preprocessing/schema/schema.pbtxt"])
def test_changed_code_is_found(finished, file, tmp_path, monkeypatch):
    checkout = Path(code_version.__file__).parents[1]
    for name in code_version.PACKAGES:
        shutil.copytree(checkout / name, tmp_path / "code" / name)
    monkeypatch.setattr(code_version, "_ROOT", tmp_path / "code")
    assert unchanged.find_unchanged(finished.config()) is not None
    with (tmp_path / "code" / file).open("a") as text:
        text.write("\n")
    assert unchanged.find_unchanged(finished.config()) is None


def test_an_upgraded_library_is_a_change(finished, monkeypatch):
    monkeypatch.setattr(code_version.metadata, "version", lambda name: "99.0")
    assert unchanged.find_unchanged(finished.config()) is None


def test_an_unchanged_run_shows_the_last_result_and_loads_neither_tensorflow_nor_tfx(finished):
    words = ("run", "--set", ",".join(finished.settings))
    done, printed, loaded = run_command(*words, PIPELINE_CONFIG="sample")
    lines = printed.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == f"amazon_reviews  unchanged since the run {RUN}"
    assert lines[1] == "settings of the environment: PIPELINE_CONFIG=sample"
    assert "accuracy  0.9000 (95 %: 0.9012 to 0.9234)   AUC 0.9500 (test split; always" in printed
    assert "compared  accuracy 0.0100 above version 6, which has 0.8900" in lines
    assert f"pushed to {finished.model}" in lines
    assert loaded & NOT_LOADED == set()
    assert list((finished.folder / "runs" / "logs").iterdir()) == []
