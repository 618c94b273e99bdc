"""The files of an evaluation: the counts, the predictions of a sample, and mistakes.

Beside them are the files that functions of TFMA read, see `tfma_files`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfx.utils import io_utils

from components.evaluator.metrics import Check, Counts, check_thresholds
from components.evaluator.thresholds import Evaluation
from preprocessing.labels import Labels, read_labels, write_labels

CANDIDATE, BASELINE = "candidate", "baseline"
"""The names of the evaluated model and of the model that it is compared with."""
COUNTS_FILE = "counts.json"
"""The file with the settings and with the counts of each slice and model."""
SAMPLE_FILE = "sampled_predictions.json"
"""The file with digest of an Example -> prediction, for the Examples that ServingCheck sends."""
MISTAKES_FILE = "mistakes.json"
"""The file with the most confident mistakes: objects with `text`, `label` and `probability`."""

Slice = tuple[str, str]
"""A feature and its value; ("", "") is the slice of all reviews."""
WHOLE: Slice = ("", "")


class Results(NamedTuple):
    """The results of an evaluation, from which all metrics follow.

    Attributes:
      labels: the classes.
      settings: slices and thresholds.
      slices: slice -> CANDIDATE and, if there is one, BASELINE -> counts.
    """

    labels: Labels
    settings: Evaluation
    slices: Mapping[Slice, Mapping[str, Counts]]

    @property
    def candidate(self) -> Counts:
        """The counts of the candidate on all reviews."""
        return self.slices[WHOLE][CANDIDATE]

    @property
    def baseline(self) -> Counts | None:
        """The counts of the baseline on all reviews; None without a baseline."""
        return self.slices[WHOLE].get(BASELINE)

    def checks(self) -> list[Check]:
        """Return the result of each threshold; the candidate is blessed if all have passed."""
        return check_thresholds(self.candidate, self.baseline, self.labels, self.settings)


def write(folder: str, results: Results) -> None:
    """Write COUNTS_FILE to the folder of a ModelEvaluation.

    Raises:
      tensorflow.errors.OpError: the file cannot be written.
    """
    slices = [
        [*slice_key, {name: counts.to_json() for name, counts in models.items()}]
        for slice_key, models in sorted(results.slices.items())
    ]
    _write_json(folder, COUNTS_FILE, {"settings": results.settings.model_dump(), "slices": slices})
    # The folder exists now.
    write_labels(folder, results.labels)


def read(evaluation: str) -> Results:
    """Return the results that `write` wrote.

    Args:
      evaluation: the folder of a ModelEvaluation.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: the file was deleted.
      ValueError, KeyError: the file is damaged.
    """
    stored = read_json(evaluation, COUNTS_FILE)
    return Results(
        read_labels(evaluation),
        # Without validation: a later version may have other settings.
        Evaluation.model_construct(**stored["settings"]),
        {
            (feature, value): {name: Counts.from_json(counts) for name, counts in models.items()}
            for feature, value, models in stored["slices"]
        },
    )


def write_predictions(folder: str, sampled: Mapping[str, Any], mistakes: Sequence[Any]) -> None:
    """Write SAMPLE_FILE and MISTAKES_FILE to the folder of a ModelEvaluation.

    Args:
      folder: the folder.
      sampled: the content of SAMPLE_FILE.
      mistakes: the content of MISTAKES_FILE.

    Raises:
      tensorflow.errors.OpError: a file cannot be written.
    """
    _write_json(folder, SAMPLE_FILE, sampled)
    _write_json(folder, MISTAKES_FILE, mistakes)


def read_mistakes(evaluation: str) -> list[dict[str, Any]]:
    """Return the content of MISTAKES_FILE in the folder of a ModelEvaluation.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: the file was deleted.
      ValueError: the file is damaged.
    """
    return list(read_json(evaluation, MISTAKES_FILE))


def stored_predictions(evaluation: str, examples: Iterable[bytes]) -> dict[int, Any]:
    """Return the predictions of the evaluation for some Examples.

    Args:
      evaluation: the folder of a ModelEvaluation.
      examples: serialized Examples.

    Returns:
      Index of an Example in `examples` -> its probability of being positive. An Example outside of
      the stored sample is missing.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: SAMPLE_FILE was deleted.
      ValueError: SAMPLE_FILE is damaged.
    """
    stored = read_json(evaluation, SAMPLE_FILE)
    digests = map(digest, examples)
    return {n: stored[found] for n, found in enumerate(digests) if found in stored}


def digest(example: bytes) -> str:
    """Return the digest of a serialized Example, which is its key in SAMPLE_FILE."""
    return hashlib.blake2b(example, digest_size=16).hexdigest()


def read_json(folder: str, name: str) -> Any:
    """Return the content of a JSON file in the folder of an artifact.

    Args:
      folder: the folder of the artifact.
      name: the name of the file.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: the file was deleted.
      ValueError: the file is not JSON.
    """
    return json.loads(io_utils.read_string_file(os.path.join(folder, name)))


def _write_json(folder: str, name: str, content: Any) -> None:
    io_utils.write_string_file(os.path.join(folder, name), json.dumps(content))
