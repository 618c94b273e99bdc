"""Clusters whose processes share no temporary folder, as on several machines."""

import json

import pytest

from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import learned_negation, make_job, probabilities, start_task
from tests.trainer_module.scripted_cluster import REPOSITORY
from trainer_module.cluster import resources
from trainer_module.training import train

pytestmark = pytest.mark.slow

OWN = "/proc/self/cwd"
"""A path that is another folder for each process."""


def run_on_machines(job, folder, counts):
    """Return (exit code, log) of the chief; every process has a folder and a TMPDIR of its own."""
    processes = {}
    try:
        for place in resources.allocate(counts):
            name = place.task.name
            home = folder / name
            (home / "tmp").mkdir(parents=True)
            own = {"TMPDIR": f"{OWN}/tmp", "PYTHONPATH": REPOSITORY, "CUDA_VISIBLE_DEVICES": ""}
            processes[name] = start_task(job, home, cwd=home, env={**place.environ, **own})
        code = processes["chief"].wait(timeout=400)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return code, (folder / "chief" / "log").read_text()


@pytest.mark.parametrize("model", ["ngram_linear", exhaustive("text_cnn")])
def test_parameter_servers_on_other_machines_start_warm_and_export(prepared, tmp_path, model):
    # A table of more than 256 KiB is cut over the servers.
    transform = {"ngrams": 2, "ngram_buckets": 1 << 18, "vocabulary_size": 9000, "max_tokens": 12}
    base = make_job(prepared, tmp_path / "base", model=model, epochs=6, learning_rate=0.16)
    base = base.model_copy(update={"transform": type(base.transform)(**transform)})
    train(base, None)
    assert learned_negation(tmp_path / "base")

    folder = tmp_path / "cluster"
    folder.mkdir()
    job = make_job(
        prepared,
        folder,
        base_model=base.serving_model_dir,
        model=model,
        strategy="parameter_server",
        workers=1,
        parameter_servers=2,
        epochs=1,
        learning_rate=1e-9,
    )
    job = job.model_copy(
        update={
            "transform": base.transform,
            # Only data and checkpoints are shared, as in a bucket.
            "model_run_dir": f"{OWN}/run",
            "serving_model_dir": f"{OWN}/model",
        }
    )
    code, log = run_on_machines(job, folder, {"chief": 1, "worker": 1, "ps": 2})
    assert code == 0, log
    assert "Warm start: weights of" in log
    figures = json.loads((folder / "chief" / "run" / "training.json").read_text())
    assert all(size > 2**18 for size in figures["parameter_server_bytes"]), "no table was cut"
    expected = probabilities(tmp_path / "base")
    assert probabilities(folder / "chief") == pytest.approx(expected, abs=1e-4)
