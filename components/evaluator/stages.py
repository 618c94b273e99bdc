"""The Beam stages of an evaluation: score files of Examples, add the sums of each slice."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow as tf
from apache_beam.utils.shared import Shared
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib
from tfx_bsl.coders import example_coder

from components.evaluator import slices, tfma_internals
from components.evaluator.sampled import Sampled, merge, sample
from components.evaluator.scoring import EvaluatedModel, Models
from components.evaluator.slices import SliceKey
from components.evaluator.sums import Pairs
from components.tfrecords import cores
from core.progress import Progress
from preprocessing import features
from trainer_module.inputs.autotune import without_autotune

_BATCH = 4096
_BYTES_AT_ONCE = 8 << 20
"""Bytes of Examples that are scored together; bounds the memory of long reviews."""
_REVIEWS_AT_ONCE = 1 << 16
"""Reviews that are summed together; bounds the memory of a file."""

SUMS, SAMPLED = "sums", "sampled"
"""The outputs of `SumFiles`."""
SlicedSums = tuple[SliceKey, list[Any]]
"""The key of a slice, and the accumulators of its reviews."""


class _Batch(NamedTuple):
    """Scored reviews.

    Attributes:
      labels: float64 [batch].
      predictions: name of the model -> float64 [batch].
      rows: slice -> the positions of its reviews in the batch.
      sampled: the predictions of the candidate for a sample.
    """

    labels: np.ndarray
    predictions: dict[str, np.ndarray]
    rows: dict[SliceKey, np.ndarray]
    sampled: list[Sampled]


class SumFiles(beam.DoFn):
    """Gzipped files of Examples -> SlicedSums, and lists of Sampled in the output SAMPLED."""

    def __init__(
        self,
        models: Sequence[EvaluatedModel],
        candidate: str,
        label: str,
        eval_config: config_pb2.EvalConfig,
    ):
        """Construct the function.

        Args:
          models: the evaluated models.
          candidate: the name of the one whose predictions are sampled.
          label: the feature with the label.
          eval_config: the metrics and the slices.
        """
        self._models = tuple(models)
        self._candidate = candidate
        self._label = label
        self._eval_config = eval_config
        self._shared = Shared()

    def setup(self) -> None:
        self._combined = tfma_internals.combined(self._eval_config)
        specs = self._eval_config.slicing_specs
        # TFMA's default is the slice of all reviews.
        self._specs = [slicer_lib.SingleSliceSpec(spec=spec) for spec in specs] or [
            slicer_lib.SingleSliceSpec()
        ]
        self._features = slices.slicing_features(self._eval_config)
        self._decoder = example_coder.ExamplesToRecordBatchDecoder()
        self._loaded = self._shared.acquire(lambda: Models(self._models), self._models)

    def process(self, files: Sequence[str]) -> Iterator[Any]:
        """Sum the reviews of the files, in as many threads as there are cores."""
        waiting: deque[Future[_Batch]] = deque()
        done: list[_Batch] = []
        count = 0
        with ThreadPoolExecutor(cores()) as pool, Progress("reviews", files[0]) as progress:
            for examples in _batches(files):
                waiting.append(pool.submit(self._score, examples))
                if len(waiting) > cores():
                    done.append(waiting.popleft().result())
                    count += len(done[-1].labels)
                    progress.advance(len(done[-1].labels))
                if count >= _REVIEWS_AT_ONCE:
                    yield from self._sums(done)
                    done, count = [], 0
            done += [future.result() for future in waiting]
            progress.advance(sum(len(batch.labels) for batch in done))
        yield from self._sums(done)

    def _score(self, examples: np.ndarray) -> _Batch:
        decoded = self._decoder.DecodeBatch(examples)
        columns = dict(zip(decoded.schema.names, decoded.columns, strict=True))
        labels = _single_values(columns.get(self._label))
        if labels is None:
            raise ValueError(f"some Examples do not have one value of the label {self._label!r}")
        texts = _single_values(columns.get(features.TEXT))
        serialized = examples.tolist()
        scored = self._loaded.score(serialized, texts.to_pylist() if texts is not None else None)
        raw = {
            name: slices.arrow_column(columns[name])
            for name in self._features
            if name in columns and not pa.types.is_null(columns[name].type)
        }
        return _Batch(
            labels.to_numpy(zero_copy_only=False).astype(np.float64),
            {name: of_model.predictions for name, of_model in scored.items()},
            slices.slices_of(
                len(examples),
                [of_model.features for of_model in scored.values()],
                raw,
                self._specs,
            ),
            sample(serialized, scored[self._candidate].predictions),
        )

    def _sums(self, batches: Sequence[_Batch]) -> Iterator[Any]:
        if not batches:
            return
        yield beam.pvalue.TaggedOutput(SAMPLED, merge(batch.sampled for batch in batches))
        starts = np.cumsum([0] + [len(batch.labels) for batch in batches])
        labels = np.concatenate([batch.labels for batch in batches])
        predictions = {
            name: np.concatenate([batch.predictions[name] for batch in batches])
            for name in batches[0].predictions
        }
        rows: dict[SliceKey, list[np.ndarray]] = {}
        for start, batch in zip(starts, batches, strict=False):
            for key, places in batch.rows.items():
                rows.setdefault(key, []).append(places + start)
        for key, parts in rows.items():
            chosen = np.concatenate(parts)
            pairs = {
                name: Pairs(labels[chosen], values[chosen]) for name, values in predictions.items()
            }
            yield key, [item.sums.of(pairs[item.model]) for item in self._combined]


class MergeSums(beam.CombineFn):
    """Accumulators of one slice -> the joined outputs of all of TFMA's combiners."""

    def __init__(self, eval_config: config_pb2.EvalConfig):
        self._eval_config = eval_config

    def setup(self) -> None:
        self._combined = tfma_internals.combined(self._eval_config)

    def create_accumulator(self) -> list[Any] | None:
        return None

    def add_input(self, accumulator: list[Any] | None, element: list[Any]) -> list[Any] | None:
        return self.merge_accumulators([accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[list[Any] | None]) -> list[Any] | None:
        some = [accumulator for accumulator in accumulators if accumulator is not None]
        if len(some) <= 1:
            return some[0] if some else None
        return [
            item.sums.merge(parts)
            for item, parts in zip(self._combined, zip(*some, strict=True), strict=True)
        ]

    def extract_output(self, accumulator: list[Any] | None) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        for item, sums in zip(self._combined, accumulator or [], strict=True):
            values.update(item.output(sums))
        return values


def _batches(files: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield the serialized Examples of the files in batches, bytes [batch]."""
    records = tf.data.Dataset.from_tensor_slices(list(files)).interleave(
        lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP").batch(_BATCH),
        cycle_length=2,
        num_parallel_calls=2,
        deterministic=True,
    )
    for batch in without_autotune(records.prefetch(1)).as_numpy_iterator():
        sizes = np.cumsum(np.fromiter(map(len, batch), np.int64, len(batch)))
        edges = np.flatnonzero(np.diff(sizes // _BYTES_AT_ONCE)) + 1
        yield from np.split(batch, edges)


def _single_values(column: pa.Array | None) -> pa.Array | None:
    """Return the values of a feature, or None if some Examples do not have exactly one."""
    if column is None or pa.types.is_null(column.type):
        return None
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return column.flatten() if np.all(lengths == 1) else None
