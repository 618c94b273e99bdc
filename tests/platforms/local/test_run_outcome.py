"""The outcome of a local run, which is read from the outputs of its components."""

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.node_ids import EVALUATOR, EXAMPLE_GEN, SERVING_CHECK
from components.run_report.history import Run
from core.errors import InputError
from platforms.local.run import collect_outcome, settings_note
from tests.examples import example, write


def test_an_evaluation_whose_files_were_deleted_is_named(tmp_path):
    """TFX's cache reuses the evaluation as long as its folder exists."""
    artifact = mlmd.Artifact(uri=str(tmp_path))
    outputs = {
        EXAMPLE_GEN: {"rejected": artifact},
        SERVING_CHECK: {"blessing": artifact},
        EVALUATOR: {"evaluation": artifact},
    }
    with pytest.raises(InputError, match=f"^{tmp_path}: files .* deleted, .* --set cache=false"):
        collect_outcome(Run("reviews", "1", outputs=outputs))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("房间很大，服务很好", "100% of the texts have no blanks between words (Han)"),
        ("Great phone", ""),
    ],
)
def test_the_texts_of_the_train_split_decide_which_settings_they_require(tmp_path, text, expected):
    train = tmp_path / "Split-train"
    train.mkdir()
    write(train / "a.gz", [example(text=f"{text} {n}", label=n % 2) for n in range(100)])
    note = settings_note(str(tmp_path))
    assert note.startswith(expected)
    assert note.endswith(": --set 'transform.character_ngrams=[2, 3]'" if expected else "")
    assert bool(note) == bool(expected)


def test_deleted_examples_do_not_hide_the_outcome(tmp_path):
    assert settings_note(str(tmp_path)) == ""
