"""The reviews that a pushed model keeps, to compare new reviews with: a sample of its test split.

The test split has the distribution of the train split, and the model has not seen its reviews. So
its scores are those that the model has for new reviews as long as nothing changes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core import storage
from core.errors import InputError
from preprocessing.labels import Labels

REFERENCE_FILE = "drift_reference.parquet"
"""The file in the folder of an evaluation. Its columns are `label`, `scores` and `text`; the text
is null after the first TEXTS reviews."""
KEPT_FILE = f"assets.extra/{REFERENCE_FILE}"
"""The file in the folder of a pushed version. TensorFlow reads no file of `assets.extra`."""
_SPAN = b"span"
"""The key in the metadata of the file's schema with `ScoredReviews.span`."""
LEAST_REVIEWS = 20
"""Minimum number of new reviews, and of the kept ones. With fewer ones no figure would say
anything."""
UNLABELLED = -1
"""The label of a review that has none, or the label of no class."""
TEXTS = 1_000
"""Maximum number of reviews whose texts are kept."""
_CHARACTERS = 1_000
"""Maximum number of characters of a kept text."""
_ROWS, _LEAST_ROWS = 20_000, 200
"""Maximum number of reviews whose scores are kept, and its minimum for many classes."""
_SCORES = 500_000
"""Number of probabilities that are kept of all reviews together, 4 bytes each."""


class NoReference(InputError):
    """The error of a pushed version that keeps no reviews."""


@dataclass(frozen=True)
class ScoredReviews:
    """Reviews with the scores of one model.

    Attributes:
      scores: see `Labels.decide`, float32 [reviews] or [reviews, classes].
      texts: the beginnings of the texts of the first reviews, see `beginning`. They are a random
        sample of the texts.
      labels: int64 [reviews]; None for reviews without labels. UNLABELLED is a review without a
        label among others. The number of classes is a label that is no class of the model.
      span: the number of the span that the reviews are from; None for an input without spans.
    """

    scores: np.ndarray
    texts: Sequence[bytes]
    labels: np.ndarray | None
    span: int | None = None

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class HashedReviews:
    """Scored reviews in the order of the hashes of their Examples, which is a random order.

    Attributes:
      hashes: int64 [reviews], ascending.
      reviews: the reviews, with labels.
      most: the maximum number of reviews.
    """

    hashes: np.ndarray
    reviews: ScoredReviews
    most: int


def beginning(text: bytes) -> bytes:
    """Return the part of a text that is kept and compared."""
    # A character has at most four bytes.
    cut = text[: 4 * _CHARACTERS].decode("utf-8", "ignore")[:_CHARACTERS]
    return cut.encode()


def rows(labels: Labels) -> int:
    """Return the maximum number of reviews that are kept and compared.

    Args:
      labels: the classes of the model.
    """
    return min(_ROWS, max(_LEAST_ROWS, _SCORES // labels.logits))


def select(
    hashes: np.ndarray, scores: np.ndarray, texts: Sequence[bytes], labels: np.ndarray, most: int
) -> HashedReviews:
    """Return the reviews with the smallest hashes.

    Args:
      hashes: the hash of each review, int64 [reviews].
      scores: see `ScoredReviews`.
      texts: the whole text of each review.
      labels: int64 [reviews].
      most: the maximum number of reviews, see `rows`.
    """
    chosen = np.argsort(hashes, kind="stable")[:most]
    kept = [beginning(texts[n]) for n in chosen[:TEXTS].tolist()]
    found = ScoredReviews(scores[chosen].astype(np.float32), kept, labels[chosen])
    return HashedReviews(hashes[chosen], found, most)


def merge(parts: Iterable[HashedReviews]) -> HashedReviews | None:
    """Return the reviews with the smallest hashes of all parts; None without a part.

    Args:
      parts: the reviews of disjoint parts, with the same maximum number of reviews.
    """
    parts = list(parts)
    if not parts:
        return None
    most = parts[0].most
    hashes = np.concatenate([part.hashes for part in parts])
    chosen = np.argsort(hashes, kind="stable")[:most]
    # Each part has the texts of its smallest hashes, so those of the smallest hashes of all exist.
    texts: list[bytes] = []
    for part in parts:
        texts += [*part.reviews.texts, *[b""] * (len(part.hashes) - len(part.reviews.texts))]
    reviews = ScoredReviews(
        np.concatenate([part.reviews.scores for part in parts])[chosen],
        [texts[n] for n in chosen[:TEXTS].tolist()],
        np.concatenate([_labels(part.reviews) for part in parts])[chosen],
    )
    return HashedReviews(hashes[chosen], reviews, most)


def _labels(reviews: ScoredReviews) -> np.ndarray:
    assert reviews.labels is not None
    return reviews.labels


def write(file: str, reviews: ScoredReviews) -> None:
    """Write reviews with labels to a file, in place of an earlier one.

    Args:
      file: a path in an existing folder, or a URL that TensorFlow writes.
      reviews: the reviews.

    Raises:
      OSError: the file cannot be written.
    """
    scores = reviews.scores.reshape(len(reviews), -1)
    ends = np.arange(len(reviews) + 1, dtype=np.int32) * scores.shape[1]
    without = [None] * (len(reviews) - len(reviews.texts))
    table = pa.table(
        {
            "label": pa.array(_labels(reviews), pa.int32()),
            "scores": pa.ListArray.from_arrays(ends, pa.array(scores.ravel(), pa.float32())),
            "text": pa.array([*reviews.texts, *without], pa.binary()),
        }
    )
    if reviews.span is not None:
        table = table.replace_schema_metadata({_SPAN: str(reviews.span)})
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    storage.write(file, content.getvalue())


def read(model: str, classes: Labels) -> ScoredReviews:
    """Return the reviews that a pushed version keeps.

    Args:
      model: the folder of the version, or its URL.
      classes: the classes of the model.

    Raises:
      NoReference: the version keeps no reviews.
      InputError: the version keeps fewer than LEAST_REVIEWS, or the file is damaged.
      OSError: the file cannot be read.
    """
    file = os.path.join(model, KEPT_FILE)
    if not storage.is_file(file):
        raise NoReference(
            f"{model}: {KEPT_FILE} is missing, the reviews that new ones are compared with. It was "
            "pushed with push.keep_reviews: false, by an earlier version or by another program; "
            "`amazon-reviews run` with push.keep_reviews: true adds the file, or pushes a model "
            "with it"
        )
    content = storage.read(file)
    try:
        found = _parse(content, classes)
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise InputError(
            f"{file} is damaged ({' '.join(str(error).split())[:200]}); push the model again, or "
            "remove this version"
        ) from None
    if len(found) < LEAST_REVIEWS:
        raise InputError(
            f"{model} was evaluated on {len(found)} {classes.nouns}, and a comparison requires at "
            f"least {LEAST_REVIEWS}; push a model that was evaluated on more"
        )
    return found


def _parse(content: bytes, classes: Labels) -> ScoredReviews:
    """Return the reviews in the content of a file.

    Raises:
      KeyError: a column is missing.
      ValueError: the content is damaged. Errors of Arrow, such as ArrowInvalid, pass through.
    """
    # `pq.read_table` frees its buffers in a thread of Arrow, also at the exit of Python, where the
    # release of an object of Python aborts the process (SIGABRT).
    with pq.ParquetFile(io.BytesIO(content)) as file:
        table = file.read(use_threads=False)
    scores = table["scores"].combine_chunks().flatten().to_numpy()
    labels = table["label"].to_numpy().astype(np.int64)
    texts = [text for text in table["text"].to_pylist() if text is not None]
    if not texts or not np.isin(labels, range(classes.number)).all():
        raise ValueError("it has no text, or a label of no class")
    span = (table.schema.metadata or {}).get(_SPAN)
    scores = scores.reshape(-1, *classes.scores_shape)
    return ScoredReviews(scores, texts, labels, None if span is None else int(span))
