"""The comparison of the newest span with the reviews that the served model was evaluated on."""

from __future__ import annotations

import json
import os

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from core.errors import InputError
from preprocessing.labels import Labels
from serving.drift import reference
from serving.drift.compare import Comparison, NotCompared, compare
from serving.drift.reference import LEAST_REVIEWS, NoReference, ScoredReviews

DRIFT_FILE = "drift.json"
"""The file of an evaluation with the comparison, or with the reason why there is none. An
evaluation has it only if the input has spans and a model with the same classes is served."""
_REASON = "not_compared"
"""The only key of DRIFT_FILE if the span was not compared."""


def compare_span(
    new: ScoredReviews, served: str, labels: Labels, allowed_drop: float
) -> Comparison | NotCompared:
    """Compare reviews of the newest span with those that the served model keeps.

    Args:
      new: reviews of the newest span with the scores of the served model.
      served: the folder of the served model.
      labels: the classes.
      allowed_drop: the greatest drop of the accuracy that is no high severity.

    Returns:
      The comparison; or the reason why there is none: the span or the served model has fewer than
      LEAST_REVIEWS, the kept reviews are damaged, or they are not from an earlier span.
    """
    if len(new) < LEAST_REVIEWS:
        return NotCompared(f"{len(new)} {labels.nouns} are too few, {LEAST_REVIEWS} are required")
    try:
        known = reference.read(served, labels)
    except NoReference:
        return NotCompared(f"the served model keeps no {labels.nouns}, see push.keep_reviews")
    # The evaluation itself does not need these reviews.
    except (InputError, OSError) as error:
        return NotCompared(str(error))
    if known.span is None or new.span is None:
        return NotCompared("the served model was not evaluated on a span")
    if known.span >= new.span:
        return NotCompared("the served model was evaluated on this span or a later one")
    return compare(known, new, labels, allowed_drop)


def write(folder: str, found: Comparison | NotCompared) -> None:
    """Write DRIFT_FILE to the folder of a ModelEvaluation.

    Raises:
      tensorflow.errors.OpError: the file cannot be written.
    """
    content = {_REASON: found.reason} if isinstance(found, NotCompared) else found.to_json()
    io_utils.write_string_file(os.path.join(folder, DRIFT_FILE), json.dumps(content))


def read(evaluation: str) -> Comparison | NotCompared | None:
    """Return what `write` wrote to the folder of a ModelEvaluation; None without the file.

    Raises:
      tensorflow.errors.OpError: the file cannot be read.
      ValueError: the file is damaged, or an earlier version wrote it, without a key.
    """
    file = os.path.join(evaluation, DRIFT_FILE)
    if not fileio.exists(file):
        return None
    content = json.loads(io_utils.read_string_file(file))
    if _REASON in content:
        return NotCompared(content[_REASON])
    return Comparison.from_json(content)
