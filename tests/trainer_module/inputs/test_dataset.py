"""The Examples that each process reads: all of them once an epoch, for any number of files."""

import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from examples.tfrecords import count_examples, report_damaged_file, write_example_counts
from preprocessing import features
from preprocessing.settings import Transform
from tests import examples
from tests.trainer_module.conftest import FILES, make_job, result, run_workers
from trainer_module.inputs import dataset
from trainer_module.inputs.batches import BatchSpec
from trainer_module.inputs.dataset import Inputs, Split, endless, make_dataset
from trainer_module.settings import Training

TRANSFORM = Transform(max_tokens=3, ngrams=1, openings=[2])
NGRAMS, TOKENS = (features.NGRAMS,), (features.TOKENS,)


def example(number):
    """An Example whose only n-gram is its number."""
    return examples.example(ngrams=[number], tokens=[number + 1] * (number % 3), label=[number % 2])


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Return a function: (Examples in each file) -> Split of files with the numbers from 0."""
    written = {}

    def split(counts):
        counts = tuple(counts)
        if counts not in written:
            folder = tmp_path_factory.mktemp("files")
            numbers = iter(range(sum(counts)))
            for place, count in enumerate(counts):
                part = [example(next(numbers)) for _ in range(count)]
                examples.write(folder / f"{place}.gz", part)
            written[counts] = Split.find([str(folder / "*.gz")])
        return written[counts]

    return split


def numbers(batches):
    return [int(n) for inputs, *_ in batches for n in inputs[features.NGRAMS].flat_values]


def test_files_are_counted_unless_their_numbers_are_stored(write, tmp_path):
    assert write([3, 0, 5]).counts == (3, 0, 5)
    files = [tmp_path / split / f"{split}.gz" for split in ("Split-train", "Split-eval")]
    for file in files:
        file.parent.mkdir()
        examples.write(file, [example(1)])
    write_example_counts(str(tmp_path), {"Split-train/Split-train.gz": 7})
    assert count_examples([str(file) for file in files]) == [7, 1]


@pytest.mark.parametrize("processes", [1, 3], ids=["whole files", "a part of each file"])
def test_a_pass_over_a_file_that_lost_examples_fails(write, tmp_path, processes):
    """Otherwise a model would be trained on a part of the Examples."""
    file = tmp_path / "Split-train" / "a.gz"
    file.parent.mkdir()
    examples.write(file, [example(number) for number in range(30)])
    write_example_counts(str(tmp_path), {"Split-train/a.gz": 40})
    for shard in Split.find([f"{file.parent}/*"]).shards(processes):
        with (
            pytest.raises(InputError, match=f"^{file} is damaged"),
            report_damaged_file([str(file)]),
        ):
            list(shard.blocks(0, tf.constant([0, 0], tf.int64)))


@pytest.mark.parametrize(
    ("counts", "processes", "files_each"),
    [
        ((30, 10, 20), 2, [1, 2]),
        ((10, 10), 3, [2, 2, 2]),
        ((50, 10), 2, [2, 2]),
    ],
    ids=["even by size", "fewer files than workers", "unfair by file"],
)
def test_shares_are_whole_files_where_that_is_fair(write, counts, processes, files_each):
    shares = write(counts).shards(processes)
    assert [len(share.files) for share in shares] == files_each
    assert sum(share.examples for share in shares) == sum(counts)
    assert max(s.examples for s in shares) <= 1.1 * sum(counts) / processes + len(counts)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    counts=st.lists(st.sampled_from([0, 1, 7, 12]), min_size=1, max_size=3).filter(any),
    processes=st.integers(1, 4),
    batch_size=st.sampled_from([1, 3, 5, 64]),
    shuffle_buffer=st.sampled_from([0, 4]),
)
def test_an_epoch_is_every_example_once(write, counts, processes, batch_size, shuffle_buffer):
    split = write(counts)
    batching = BatchSpec(NGRAMS, TRANSFORM, batch_size)
    shares = split.shards(processes)
    steps = max(batching.count(share.examples) for share in shares)
    epochs = [Counter(), Counter()]
    for share in shares:
        data = endless(share, batching, steps, shuffle_buffer=shuffle_buffer, seed=3)
        for place, batch in enumerate(data.take(2 * steps)):
            epochs[place // steps].update(numbers([batch]))
    once = Counter(range(sum(counts)))
    assert epochs == [once, once]


@pytest.mark.parametrize("names", [NGRAMS, TOKENS])
def test_the_order_is_new_in_each_epoch_and_the_same_for_a_seed(write, names):
    share = write([40, 40])
    batching = BatchSpec(names, TRANSFORM, 8)

    def two_epochs(seed):
        tf.random.set_seed(1)
        data = endless(share, batching, 10, shuffle_buffer=100, seed=seed)
        return contents(data.take(20))

    first = two_epochs(5)
    assert first[:10] != first[10:]
    assert two_epochs(5) == first
    assert two_epochs(6) != first


@pytest.mark.parametrize("batch_size", [4, 64, 200])
def test_a_batch_has_examples_of_many_places_of_a_sorted_file(write, batch_size):
    batching = BatchSpec(NGRAMS, TRANSFORM, batch_size)
    batches = endless(write([4000]), batching, 4000 // batch_size, shuffle_buffer=4000, seed=5)
    for batch in batches.take(10):
        places = np.sort(numbers([batch]))
        runs = 1 + np.count_nonzero(np.diff(places) > 1)
        assert runs > 0.75 * min(batch_size, 64)


@pytest.mark.parametrize("names", [NGRAMS, (*NGRAMS, *TOKENS)])
def test_two_processes_read_different_parts_of_a_sorted_file_at_the_same_step(write, names):
    examples = 4000
    orders = []
    for process, share in enumerate(write([examples]).shards(2)):
        batching = BatchSpec(names, TRANSFORM, 16)
        options = {"shuffle_buffer": examples, "seed": 5, "process": process}
        batches = endless(share, batching, batching.count(share.examples), **options)
        orders.append([np.mean(numbers([batch])) for batch in batches.take(100)])
    # The mean number of the Examples of a batch is its place in the file.
    assert abs(np.corrcoef(orders)[0, 1]) < 0.4


def contents(batches):
    """Return the content of each batch, for both kinds of features."""
    return [
        values.to_list() if isinstance(values, tf.RaggedTensor) else values.numpy().tolist()
        for inputs, *_ in batches
        for values in inputs.values()
    ]


@pytest.mark.slow
@settings(max_examples=7)
@given(
    counts=st.lists(st.sampled_from([0, 1, 15, 16, 40]), min_size=1, max_size=12).filter(any),
    names=st.sampled_from([NGRAMS, TOKENS]),
    batch_size=st.sampled_from([1, 7, 16, 33]),
    shuffle_buffer=st.sampled_from([0, 1, 40, 1000]),
    processes=st.integers(1, 2),
    more=st.integers(0, 2),
    done=st.floats(0, 2),
)
def test_a_resumed_training_reads_the_same_batches(
    write, counts, names, batch_size, shuffle_buffer, processes, more, done
):
    share = write(counts).shards(processes)[-1]
    batching = BatchSpec(names, TRANSFORM, batch_size)
    wanted = batching.count(share.examples) + more
    if not wanted:
        return
    options = {"shuffle_buffer": shuffle_buffer, "seed": 3}
    done = int(done * wanted)
    whole = contents(endless(share, batching, wanted, **options).take(3 * wanted))
    rest = endless(share, batching, wanted, done=done, **options).take(3 * wanted - done)
    assert contents(rest) == whole[done:]


def test_static_batches_have_one_shape_and_padding_has_no_weight(write):
    share = write([5])
    batching = BatchSpec(NGRAMS, TRANSFORM, 3, static_shapes=True)
    batches = list(endless(share, batching, 3).take(3))
    assert [weight.numpy().tolist() for *_, weight in batches] == [[1, 1, 1], [1, 1, 0], [0, 0, 0]]
    # Three words, and two of them once more as the opening.
    for inputs, label, _ in batches:
        assert inputs[features.NGRAMS].shape == (3, 5)
        assert label.shape == (3, 1)
    ids = batches[1][0][features.NGRAMS].numpy().tolist()
    assert ids == [[3] + [-1] * 4, [4] + [-1] * 4, [-1] * 5]
    assert make_dataset(share, batching).element_spec[0][features.NGRAMS].shape == (3, 5)


def test_the_examples_of_the_first_replica_are_those_of_its_batches(write):
    split = write([4, 13])
    files = [os.path.join(os.path.dirname(split.files[0]), "*.gz")]
    training = Training(batch_size_per_replica=4)
    job = SimpleNamespace(
        training=training, transform=TRANSFORM, train_files=files, eval_files=files
    )
    alone = SimpleNamespace(process=0, processes=1, sum=lambda here: here)
    inputs = Inputs(job, NGRAMS, SimpleNamespace(num_replicas_in_sync=2), alone)
    assert inputs.steps == 3
    batches = endless(split, BatchSpec(NGRAMS, TRANSFORM, 4, replicas=2), 6).take(12)
    sizes = [len(label) for _, label in batches]
    assert [inputs.examples_of_step(step) for step in range(6)] == sizes[::2] == [4, 4, 1] * 2


COUNT = """
import json, os, sys
from preprocessing.labels import SENTIMENT
from trainer_module.cluster.collective import Collective
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs.dataset import Inputs
from trainer_module.settings import TrainingJob
from trainer_module.strategies import make_strategy
jobs = [TrainingJob.model_validate_json(job) for job in sys.argv[1:]]
cluster = Cluster.from_environ(os.environ)
strategy, _ = make_strategy(jobs[0].training, cluster)
results = []
for job in jobs:
    inputs = Inputs(job, ('ngrams',), strategy, Collective(strategy, cluster))
    batches = iter(inputs.train_dataset(0))
    seen, of_first_replica = [], []
    for _ in range(inputs.steps):
        features, _ = next(batches)
        first = strategy.experimental_local_results(features['ngrams'])[0]
        of_first_replica.append(int(first.nrows()))
        for local in strategy.experimental_local_results(features['ngrams']):
            seen += [sorted(row) for row in local.to_list()]
    expected = [inputs.examples_of_step(step) for step in range(inputs.steps)]
    assert of_first_replica == expected, of_first_replica
    counts = [inputs.class_counts(kind, SENTIMENT).tolist() for kind in ('labels', 'ngrams')]
    results.append([seen, *counts])
print('RESULT', json.dumps(results), flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_two_real_workers_read_every_example_once_and_count_all(prepared, tmp_path):
    """In the first job a worker reads whole files, in the second a part of the only file."""
    settings = {"strategy": "multi_worker_mirrored", "workers": 2, "batch_size_per_replica": 7}
    jobs = [make_job(prepared, tmp_path, train=t, **settings) for t in ("train-*.gz", "train-0.gz")]
    workers = run_workers(COUNT, {"worker": 2}, *(job.model_dump_json() for job in jobs))
    results = [result(*worker) for worker in workers]
    for job, *of_workers in zip(jobs, *results, strict=True):
        batches = make_dataset(Split.find(job.train_files), BatchSpec(NGRAMS, job.transform, 50))
        rows, labels = Counter(), np.zeros(2)
        totals = np.zeros([2, job.transform.ngram_buckets])
        for inputs, label in batches:
            ngrams, classes = inputs[features.NGRAMS], label.numpy().astype(int)[:, 0]
            rows.update(tuple(sorted(row)) for row in ngrams.to_list())
            labels += np.bincount(classes, minlength=2)
            np.add.at(totals, (classes[ngrams.value_rowids()], ngrams.flat_values), 1)
        seen = [Counter(map(tuple, each)) for each, *_ in of_workers]
        assert all(seen), "a worker read nothing"
        assert sum(seen, Counter()) == rows
        for _, *counts in of_workers:
            np.testing.assert_array_equal(counts[0], labels)
            np.testing.assert_array_equal(counts[1], totals)
    assert labels.sum() == FILES["train"][0]


# A process of its own, because the logical devices of a process cannot be changed.
ENDS = """
import gc, time
import tensorflow as tf
from examples.tfrecords import without_autotune
from trainer_module.settings import Training
from trainer_module.strategies import make_strategy
mirrored, _ = make_strategy(Training(strategy="mirrored", devices=2), None)
def dataset(context=None):
    numbers = tf.data.Dataset.range(10**9).map(lambda n: n + 1, tf.data.AUTOTUNE)
    return without_autotune(numbers.batch(8).prefetch(tf.data.AUTOTUNE))
iterators = []
for _ in range(10):
    iterators += [iter(dataset()), iter(mirrored.distribute_datasets_from_function(dataset))]
for iterator in iterators:
    next(iterator)
time.sleep(4)
longest = 0.0
while iterators:
    start = time.perf_counter()
    iterators.pop()
    gc.collect()
    longest = max(longest, time.perf_counter() - start)
print(longest)
"""


@pytest.mark.slow
@pytest.mark.both_stacks
def test_iterators_end_at_once_with_and_without_a_strategy():
    """With autotuning the longest of these ends takes half a minute or more."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, check=True, timeout=600
    )
    assert float(done.stdout) < 5.0


def test_the_counts_of_very_large_files_are_exact(tmp_path, monkeypatch):
    names = [str(tmp_path / name) for name in ("0.gz", "1.gz", "2.gz")]
    for name in names:
        open(name, "wb").close()
    known = dict(zip(names, (2**24 + 1, 70_001, 2**31 + 1), strict=True))
    monkeypatch.setattr(dataset, "count_examples", lambda files: [known[name] for name in files])
    others = tf.constant([0.0, known[names[1]], 0.0], tf.float64)
    # The second of two processes counts the second file.
    collective = SimpleNamespace(
        process=0, processes=2, sum=lambda here: tf.cast(here, tf.float64) + others
    )
    split = Split.find([f"{tmp_path}/*.gz"], collective)
    assert split.counts == tuple(known.values())
    assert split.examples == sum(known.values())
