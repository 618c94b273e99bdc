"""A tiny transformed data set, and trainings on it in processes of their own."""

import contextlib
import fcntl
import functools
import json
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest

from preprocessing.labels import Labels
from tests.trainer_module.scripted_cluster import ScriptedCluster
from trainer_module.cluster import resources
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import TrainingJob

TRANSFORM = {
    "ngrams": 2,
    "ngram_buckets": 4096,
    "openings": [2, 3],
    "character_ngrams": [3],
    "vocabulary_size": 100,
    "max_tokens": 12,
}
TRAINING = {
    "model": "ngram_linear",
    "strategy": "one_device",
    "epochs": 3,
    "batch_size_per_replica": 16,
    # 0.05 for batches of 16.
    "learning_rate": 0.4,
    "shuffle_buffer": 1000,
    "seed": 1,
}
FILES = {"train": (120, 90, 40), "eval": (50,)}
"""The number of Examples in each file."""


def reviews(count):
    """Single words are uninformative here; `not` in front of a word reverses the label."""
    for i in range(count):
        word, label = [("good", 1), ("bad", 0)][i % 2]
        negated = i % 3 == 0
        yield f"{'not' if negated else 'very'} {word} number{i}", label ^ negated


@pytest.fixture
def scripted(tmp_path, monkeypatch, log):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    scripted = ScriptedCluster(tmp_path)
    yield scripted
    assert scripted.alive() == []


@pytest.fixture(scope="session")
def once(tmp_path_factory, worker_id):
    """Return a function: (name, function that writes to a folder) -> that folder.

    One worker calls the function for all workers of pytest.
    """
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent

    def once(name, write):
        folder, unfinished = base / name, base / f"{name}-unfinished"
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                unfinished.mkdir()
                write(unfinished)
                unfinished.rename(folder)
        return folder

    return once


@pytest.fixture(scope="session")
def prepared(once):
    """Return a folder with `train-*.gz`, `eval-*.gz` (TFRecords) and the transform graph."""
    return once("prepared", _prepare)


def _prepare(folder):
    # Imported here, because tests that need no TensorFlow would otherwise wait for its import.
    import tensorflow as tf
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

    from preprocessing import features
    from preprocessing.labels import SENTIMENT, write_labels
    from preprocessing.transform import preprocessing_fn
    from tests import examples

    spec = {
        features.TEXT: tf.io.FixedLenFeature([1], tf.string),
        features.LABEL: tf.io.FixedLenFeature([1], tf.int64),
    }
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    rows = [{"text": [text.encode()], "label": [label]} for text, label in reviews(300)]
    config = {**TRANSFORM, "features": [features.NGRAMS, features.TOKENS]}
    with tft_beam.Context(temp_dir=str(folder / "tmp")):
        (data, _), transform_fn = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(
            lambda inputs: preprocessing_fn(inputs, config)
        )
        transform_fn | tft_beam.WriteTransformFn(str(folder / "graph"))
    write_labels(str(folder / "graph"), SENTIMENT)
    rest = ({name: row[name] for name in ("ngrams", "tokens", "label")} for row in data)
    for split, counts in FILES.items():
        for number, count in enumerate(counts):
            part = [examples.example(**next(rest)) for _ in range(count)]
            examples.write(folder / f"{split}-{number}.gz", part)


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Write 64 train and 20 eval Examples without a transform graph, which takes no time.

    The first n-gram of an Example and its only word are its number; the second n-gram is its label.
    """
    from preprocessing.labels import SENTIMENT, write_labels
    from tests import examples

    folder = tmp_path_factory.mktemp("records")
    (folder / "graph").mkdir()
    write_labels(str(folder / "graph"), SENTIMENT)
    for split, numbers in (("train", range(64)), ("eval", range(64, 84))):
        rows = (
            examples.example(ngrams=[n, 100 + n % 2], tokens=[2 + n], label=[n % 2])
            for n in numbers
        )
        examples.write(folder / f"{split}-0.gz", rows)
    return folder


@pytest.fixture(scope="session")
def records_of(tmp_path_factory):
    """Return a function: number of classes -> a folder like `records` with Examples of them.

    The words and the n-grams of an Example determine its class. There is one Example of each class,
    and at least 64. The train split has as many Examples in each of its two files, and each eighth
    has no words; of the eval split the last batch is short. It has no empty texts: their classes
    have almost equal probabilities, and rounding would decide the accuracy.
    """
    from preprocessing.labels import Labels, write_labels
    from tests import examples

    def row(number, classes, *, is_empty=False):
        label = number % classes
        words = [] if is_empty else [label % 32, 32 + label // 32]
        ngrams = [1000 + number, *(2000 + word for word in words)] * bool(words)
        return examples.example(ngrams=ngrams, tokens=[2 + word for word in words], label=[label])

    @functools.cache
    def records_of(classes):
        folder = tmp_path_factory.mktemp(f"records-{classes}")
        (folder / "graph").mkdir()
        labels = Labels(tuple(f"class {number}" for number in range(classes)))
        write_labels(str(folder / "graph"), labels)
        half = max(32, -(-classes // 2))
        for name, numbers in (("train-0", range(half)), ("train-1", range(half, 2 * half))):
            rows = [row(number, classes, is_empty=number % 8 == 7) for number in numbers]
            examples.write(folder / f"{name}.gz", rows)
        examples.write(folder / "eval-0.gz", [row(number, classes) for number in range(21)])
        return folder

    return records_of


@pytest.fixture
def skewed(prepared, tmp_path):
    """Return a folder like `prepared` with 60 negative and 90 positive train Examples, of which 60
    and 60 are in the first file."""
    import tensorflow as tf

    from tests import examples

    folder = tmp_path / "skewed"
    folder.mkdir()
    for name in ("graph", "train-0.gz", "eval-0.gz"):
        (folder / name).symlink_to(prepared / name)
    records = tf.data.TFRecordDataset(str(prepared / "train-1.gz"), "GZIP").as_numpy_iterator()
    labels = {one: tf.train.Example.FromString(one).features.feature["label"] for one in records}
    positive = [one for one, label in labels.items() if label.int64_list.value[0]]
    examples.write(folder / "train-1.gz", positive[:30])
    return folder


@pytest.fixture(scope="session")
def trained(prepared, once):
    """Return the folder of an uninterrupted training on one device, with its outputs."""

    def write(folder):
        from trainer_module.training import train

        train(make_job(prepared, folder), None)

    return once("trained", write)


TOPICS = Labels(("Größe", '50% "off"', "<b>", "3", "true"))
"""Classes with difficult names."""
TOPIC_TEXTS = [f"topic{number} is the topic" for number in range(TOPICS.number)]
"""A text of each class."""


@pytest.fixture(scope="session")
def topics(prepared, once):
    """Return the folder of a training on five classes, with its data and outputs.

    The word `topicN` decides the class. The features are those of `prepared`.
    """

    def write(folder):
        import shutil

        from preprocessing.fast.ngrams import ngram_ids, split_words
        from preprocessing.labels import write_labels
        from tests import examples
        from trainer_module.training import train

        shutil.copytree(prepared / "graph", folder / "graph")
        write_labels(str(folder / "graph"), TOPICS)
        names = ("ngrams", "ngram_buckets", "openings", "character_ngrams")
        settings = [TRANSFORM[name] for name in names]
        for split, count in (("train", 100), ("eval", 20)):
            rows = []
            for n in range(count):
                text = f"topic{n % TOPICS.number} is number{n}"
                ids, _ = ngram_ids(split_words([text.encode()]), *settings)
                rows.append(examples.example(ngrams=ids.tolist(), label=[n % TOPICS.number]))
            examples.write(folder / f"{split}-0.gz", rows)
        train(make_job(folder, folder), None)

    return once("topics", write)


def make_job(prepared, folder, *, train="train-*.gz", base_model=None, **training):
    """Return a TrainingJob on `prepared` that writes to `folder`."""
    return TrainingJob(
        train_files=[str(prepared / train)],
        eval_files=[str(prepared / "eval-*.gz")],
        transform_graph=str(prepared / "graph"),
        serving_model_dir=str(folder / "model"),
        model_run_dir=str(folder / "run"),
        checkpoint_dir=str(folder / "checkpoints"),
        base_model=base_model,
        training={**TRAINING, **training},
        transform=TRANSFORM,
    )


def fn_args(folder, checkpoints, base_model=None, **training):
    """Return the arguments of TFX for a training on the data in `folder`."""
    return SimpleNamespace(
        train_files=[str(folder / "train-*.gz")],
        eval_files=[str(folder / "eval-*.gz")],
        transform_graph_path=str(folder / "graph"),
        serving_model_dir=str(folder / "model"),
        model_run_dir=str(folder / "run"),
        base_model=base_model,
        hyperparameters=None,
        custom_config={
            "training": training,
            "transform": TRANSFORM,
            "code": "1",
            "checkpoints": str(checkpoints),
        },
    )


def run_task(job, folder, environ=None, timeout=400):
    """Run `python -m trainer_module.task` on the job; return (exit code, output)."""
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / "job.json"
    file.write_text(job.model_dump_json())
    done = subprocess.run(
        [sys.executable, "-m", "trainer_module.task", str(file)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return SimpleNamespace(code=done.returncode, log=done.stdout)


def start_task(job, folder, **options):
    """Start `python -m trainer_module.task` on the job; its output goes to FOLDER/log."""
    file = folder / "job.json"
    file.write_text(job.model_dump_json())
    with open(folder / "log", "w") as log:
        command = [sys.executable, "-m", "trainer_module.task", str(file)]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **options)


def run_workers(script, counts, *arguments):
    """Run a script as each task of a local cluster until the workers end; return their outputs.

    The script ends with `os._exit`, as a training does: the regular exit of TensorFlow may crash.
    Parameter servers and their workers are killed when the chief ends. A crash prints its stack.
    """
    places = resources.allocate(counts)
    with contextlib.ExitStack() as exits:
        processes = []
        for place in places:
            ends = not Cluster.from_environ(place.environ).serves
            process = subprocess.Popen(
                [sys.executable, "-c", script, *arguments],
                env={**place.environ, "PYTHONFAULTHANDLER": "1"},
                stdout=subprocess.PIPE if ends else subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                text=True,
            )
            exits.callback(process.kill)
            processes += [process] * ends
        outputs = [process.communicate(timeout=400)[0] for process in processes]
    return [(process.returncode, log) for process, log in zip(processes, outputs, strict=True)]


def result(code, log):
    """Return the JSON value after RESULT in the output of a process that has succeeded."""
    assert code == 0, log
    [line] = [line for line in log.splitlines() if line.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))


def summary(folder):
    def refuse(name):
        raise ValueError(f"training.json contains {name}, which is not JSON")

    return json.loads((folder / "run" / "training.json").read_text(), parse_constant=refuse)


def predict(folder, texts):
    import tensorflow as tf

    model = tf.saved_model.load(str(folder / "model"))
    return model.signatures["predict_text"](texts=tf.constant(texts))


TEXTS = ["very good number3", "not bad", "bad", ""]


def probabilities(folder):
    return predict(folder, TEXTS)["probability"].numpy()


def check_evaluation(folder, weights=(1, 1)):
    """Compare the figures of a training with the exported model on all Examples of the eval split.

    Args:
      folder: that of the training.
      weights: the weights of a negative and of a positive Example in the loss.
    """
    texts, labels = zip(*list(reviews(300))[sum(FILES["train"]) :], strict=True)
    found = predict(folder, list(texts))["probability"].numpy().ravel().tolist()
    pairs = list(zip(found, labels, strict=True))
    losses = [-math.log(p if label else 1 - p) * weights[label] for p, label in pairs]
    right = [(p > 0.5) == label for p, label in pairs]
    figures = summary(folder)
    # The logarithm of a probability near 1 is exact to the precision of its float32.
    assert figures["val_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4, abs=1e-6)
    assert figures["val_accuracy"] == pytest.approx(sum(right) / len(right), rel=1e-5)


def learned_negation(folder):
    """Return whether the exported model has learned the effect of `not`."""
    labels = predict(folder, ["very good", "not good", "very bad", "not bad"])["label"]
    return labels.numpy().tolist() == [1, 0, 0, 1]
