"""Each Example once in an epoch and once in an evaluation, under every strategy."""

import math

import pytest

from tests.trainer_module.conftest import FILES, make_job, predict, reviews, run_task, summary

pytestmark = pytest.mark.slow


def evaluated_by_hand(folder):
    """(loss, accuracy) of the exported model on the eval split."""
    texts, labels = zip(*list(reviews(300))[sum(FILES["train"]) :], strict=True)
    probabilities = predict(folder, list(texts))["probability"].numpy().ravel().tolist()
    pairs = list(zip(probabilities, labels, strict=True))
    losses = [-math.log(p if label else 1 - p) for p, label in pairs]
    right = [(p > 0.5) == label for p, label in pairs]
    return sum(losses) / len(losses), sum(right) / len(right)


@pytest.mark.parametrize(
    "training",
    [
        {"loop": "fit"},
        {"loop": "custom"},
        {"loop": "fit", "jit_compile": True},
        {"loop": "custom", "jit_compile": True, "steps_per_execution": 3},
        {"strategy": "mirrored", "devices": 3},
        {"strategy": "central_storage", "devices": 2},
        {"strategy": "multi_worker_mirrored", "workers": 2},
        {"strategy": "parameter_server", "workers": 2, "parameter_servers": 2},
        {"strategy": "parameter_server", "workers": 2, "loop": "custom", "steps_per_execution": 3},
    ],
    ids=lambda training: "-".join(str(value) for value in training.values()),
)
def test_an_evaluation_is_the_mean_over_all_examples(prepared, tmp_path, training):
    """50 Examples in batches of 16: the last one is short, and shares differ."""
    done = run_task(make_job(prepared, tmp_path, epochs=2, **training), tmp_path)
    assert done.code == 0, done.log
    loss, accuracy = evaluated_by_hand(tmp_path)
    figures = summary(tmp_path)
    assert figures["val_loss"] == pytest.approx(loss, rel=1e-5)
    assert figures["val_accuracy"] == pytest.approx(accuracy, rel=1e-5)
