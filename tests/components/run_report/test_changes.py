"""What changed between two runs: settings, data, code, metrics and answers."""

import dataclasses
import json

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.evaluator import files
from components.evaluator.files import Changed
from components.line_counts import LineCounts
from components.run_report.changes import compare_runs, what_changed
from components.run_report.earlier import Earlier, read_earlier
from components.run_report.history import read_runs, record_outcome
from preprocessing.labels import SENTIMENT
from tests.components.run_report.artifacts import EVALUATION, write_run
from tests.outcomes import OUTCOME
from tests.platforms.local.store import Metadata

SETTINGS = {
    "name": "mine",
    "paths": {"root": "/a", "serving": "/serving"},
    "training": {"epochs": 2, "devices": None},
    "push": {"destination": "filesystem"},
}


@pytest.fixture
def pair(tmp_path):
    """A run that pushed version 7, and a run with this baseline."""
    written = write_run(tmp_path)
    before = dataclasses.replace(
        written,
        id="2026-11-21T10:00:00.000001",
        settings=SETTINGS,
        pushed_to="/serving/7",
        code={"Trainer": "1", "Evaluator": "2"},
        outcome=OUTCOME,
        input_fingerprint="a",
    )
    training = {"epochs": 3, "devices": ["CPU:0"], "seed": 1}
    after = dataclasses.replace(
        before,
        id="2026-11-22T10:00:00.000001",
        settings={**SETTINGS, "paths": {"root": "/b", "serving": "/serving"}, "training": training},
        versions={**written.versions, "tfx": "1.21.0"},
        code={"Trainer": "3", "Evaluator": "2"},
        baseline="version 7",
        pushed_to="",
        outcome=dataclasses.replace(OUTCOME, lines=LineCounts.from_file({"examples/train": 10})),
        input_fingerprint="b",
    )
    return before, after


def test_settings_data_and_code_that_differ(pair):
    changes = compare_runs(*pair)
    assert (changes.before, changes.after) == ("run 2026-11-21T10:00:00", "run 2026-11-22T10:00:00")
    assert [tuple(each) for each in changes.settings] == [
        ("training.epochs", "2", "3"),
        ("training.devices", "none", '["CPU:0"]'),
        ("training.seed", "–", "1"),
    ]
    assert [tuple(each) for each in changes.data] == [
        ("lines read", "0", "10"),
        ("train split", "0", "10"),
        ("content of the files", "other files", "these files"),
    ]
    assert [tuple(each) for each in changes.code] == [
        ("tfx", "1.16.0", "1.21.0"),
        ("components", "earlier code", "other code: Trainer"),
    ]
    assert changes.unchanged == ""
    same = compare_runs(pair[0], pair[0])
    assert same.unchanged == "Unchanged: settings, data, code."
    assert same.same_reviews
    assert not changes.same_reviews


def test_models_are_compared_on_the_same_reviews_if_one_is_the_baseline_of_the_other(pair):
    before, after = pair
    files.write(after.uris["evaluation"], EVALUATION)
    files.write_changed(after.uris["evaluation"], Changed(1, 61, []))
    changes = compare_runs(before, after)
    assert changes.same_reviews
    accuracy = changes.metrics[0]
    assert (accuracy.title, accuracy.before, accuracy.after) == ("accuracy", 0.85, 0.91)
    assert "gets 1 test review wrong that run 2026-11-21T10:00:00 got right, and 61" in (
        changes.answers_sentence
    )
    # Another run pushed a model with the same name somewhere else.
    settings = {**before.settings, "paths": {"serving": "/elsewhere"}}
    other = compare_runs(dataclasses.replace(before, settings=settings), after)
    assert (other.same_reviews, other.answers) == (False, None)
    assert other.metrics[0].before == other.metrics[0].after == 0.91234


def test_an_evaluation_that_was_deleted_leaves_the_recorded_metrics(pair):
    before, after = pair
    gone = dataclasses.replace(after, uris={"evaluation": "/missing"})
    assert [each.title for each in compare_runs(before, gone).metrics] == ["accuracy", "AUC"]


@pytest.mark.parametrize(
    ("wrong", "right", "sentence"),
    [
        (0, 0, "Both models get the same test reviews right."),
        (10, 12, "Chance alone often makes such a difference (sign test, p 0.83)."),
        (10, 30, "Chance alone seldom makes such a difference (sign test, p 0.0022)."),
    ],
)
def test_the_answers_are_judged_by_a_sign_test(pair, wrong, right, sentence):
    answers = Changed(wrong, right, [])
    names = ("version 7", "this model")
    changes = what_changed(None, pair[1], EVALUATION, answers, names)
    assert changes.answers_sentence.endswith(sentence)
    assert changes.labels == SENTIMENT


def test_a_served_model_without_a_record_is_compared_by_its_answers_alone(pair):
    names = ("version 7", "this model")
    changes = what_changed(None, pair[1], EVALUATION, None, names)
    assert changes.unknown == (
        "The settings of version 7 are unknown, because no run in paths.metadata has pushed it."
    )
    assert changes.groups == {}
    assert changes.same_reviews


@pytest.fixture
def metadata(tmp_path):
    metadata = Metadata(tmp_path)
    for number in range(1, 6):
        metadata.add_run(f"run {number}", SETTINGS, ["Trainer"])
        record_outcome(
            metadata.store,
            f"run {number}",
            dataclasses.replace(OUTCOME, pushed_to=f"/serving/{number}"),
        )
    return metadata


def test_earlier_runs_and_the_one_that_pushed_the_served_model(metadata, monkeypatch):
    monkeypatch.setattr("components.run_report.earlier.RECENT", 2)
    runs = {run.id: run for run in read_runs(metadata.store)}
    newest = dataclasses.replace(runs["run 5"], baseline="version 1")
    earlier = read_earlier(metadata.store, newest)
    assert [run.id for run in earlier.recent] == ["run 4", "run 3"]
    assert earlier.served.id == "run 1"
    # A later run that pushed the same version, as after a rollback, is not an earlier one.
    middle = dataclasses.replace(runs["run 3"], baseline="version 5")
    assert read_earlier(metadata.store, middle).served is None
    elsewhere = {**SETTINGS, "push": {"destination": "vertex"}}
    other = dataclasses.replace(newest, settings=elsewhere)
    assert read_earlier(metadata.store, other).served is None
    assert read_earlier(metadata.store, runs["run 1"]) == Earlier([], None)


def test_the_record_of_a_run_has_its_code_and_the_fingerprint_of_its_input(metadata):
    [execution, *_] = metadata.store.get_executions_by_context(
        metadata.store.get_context_by_type_and_name("pipeline_run", "run 5").id
    )
    execution.custom_properties["code"].string_value = "abc"
    options = json.dumps({"input_fingerprint": "def"})
    execution.custom_properties["options"].string_value = options
    execution.last_known_state = mlmd.Execution.COMPLETE
    metadata.store.put_executions([execution])
    [run, *_] = read_runs(metadata.store)
    assert (run.code, run.input_fingerprint) == ({"Trainer": "abc"}, "def")
