"""The files of an evaluation: the counts, the predictions of a sample, and mistakes.

Beside them are the files that functions of TFMA read, see `tfma_files`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from components.evaluator.counts import Counts
from components.evaluator.gates import Check, check_thresholds, missing_classes
from components.evaluator.thresholds import Evaluation
from preprocessing.labels import LABELS_FILE, SENTIMENT, Labels, read_labels, write_labels
from preprocessing.reading.listing import listed, short

CANDIDATE, BASELINE = "candidate", "baseline"
"""The names of the evaluated model and of the model that it is compared with."""
COUNTS_FILE = "counts.json"
"""The file with the settings and with the counts of each slice and model."""
SAMPLE_FILE = "sampled_predictions.json"
"""The file with digest of an Example -> prediction, for the Examples that ServingCheck sends. A
prediction is the probability of the second of two classes. Of more classes it is an object with
class -> probability, of the most probable classes."""
MISTAKES_FILE = "mistakes.json"
"""The file with the most confident mistakes: an object for each `WrongAnswer`."""
CONFUSIONS_FILE = "confusions.json"
"""The file with the most frequent confusions: objects with `label`, `predicted`, and `texts`, which
are objects with `text` and `probability`."""
CHANGED_ANSWERS_FILE = "changed_answers.json"
"""The file about the reviews that exactly one of candidate and baseline gets right: an object with
the numbers `newly_wrong` and `newly_right`, and with `regressions`, which are some of the reviews
that only the candidate gets wrong, as in MISTAKES_FILE. Without a baseline there is no file."""

_SHOWN = 12
"""Maximum number of classes that a sentence names."""
Slice = tuple[str, str]
"""A feature and its value; ("", "") is the slice of all reviews."""
WHOLE: Slice = ("", "")


class OtherModel(NamedTuple):
    """A served model that has other classes than the candidate.

    Attributes:
      name: its name, such as `version 7`.
      classes: its classes in their order.
    """

    name: str
    classes: Sequence[str]


@dataclass(frozen=True)
class WrongAnswer:
    """A review that a model answers wrongly, as it is in MISTAKES_FILE.

    Attributes:
      text: the beginning of the text.
      label: the class of the review.
      predicted: the class of the answer.
      probability: the probability of the answer; of two classes, that of the second one.
    """

    text: str
    label: int
    predicted: int
    probability: float

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WrongAnswer:
        """Return the answer that `asdict` converted.

        Args:
          stored: the result of `asdict`, of any version.

        Raises:
          KeyError: a key is missing.
        """
        # Early evaluations are of two classes, and lack the answer, which follows from the label.
        predicted = stored.get("predicted", 1 - stored["label"])
        return cls(stored["text"], stored["label"], predicted, stored["probability"])


ConfusedReviews = Mapping[tuple[int, int], Sequence[WrongAnswer]]
"""Label and predicted label -> some of these reviews; the most frequent pair is the first one."""


class Changed(NamedTuple):
    """The reviews that exactly one of candidate and baseline gets right.

    Attributes:
      newly_wrong: the number of reviews that only the candidate gets wrong.
      newly_right: the number of reviews that only the baseline gets wrong.
      regressions: the most confident mistakes of those of `newly_wrong`.
    """

    newly_wrong: int
    newly_right: int
    regressions: Sequence[WrongAnswer]


class Results(NamedTuple):
    """The results of an evaluation, from which all metrics follow.

    Attributes:
      labels: the classes.
      settings: slices and thresholds.
      slices: slice -> CANDIDATE and, if there is one, BASELINE -> counts.
      other: the served model, if the candidate is not compared with it because it has other
        classes; else None.
      known: why the baseline may have been trained on the test split, as a predicate; empty if it
        was not, or without a baseline.
    """

    labels: Labels
    settings: Evaluation
    slices: Mapping[Slice, Mapping[str, Counts]]
    other: OtherModel | None = None
    known: str = ""

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
        return check_thresholds(
            self.candidate, self.baseline, self.labels, self.settings, self.known
        )

    @property
    def other_classes(self) -> str:
        """A clause with the classes of both models, if they differ; else empty."""
        if self.other is None:
            return ""
        theirs, ours = list(self.other.classes), list(self.labels.names)
        if sorted(theirs) == sorted(ours):
            differ = "the same classes in another order"
        else:
            differ = "other classes"
        return (
            f"{self.other.name} has {differ}: it has {listed(theirs, _SHOWN)}, "
            f"and this model {listed(ours, _SHOWN)}"
        )

    @property
    def missing(self) -> str:
        """A sentence about the classes without a review in the test split; empty without any."""
        missing = missing_classes(self.candidate, self.labels)
        if not missing:
            return ""
        words = self.labels.nouns
        if len(missing) == 1:
            [name] = map(short, missing)
            return f"The test split has no {words} of the class {name}, so it was not tested."
        return (
            f"The test split has no {words} of {len(missing):,} classes, so they were not tested: "
            f"{listed(missing, _SHOWN)}."
        )


def write(folder: str, results: Results) -> None:
    """Write COUNTS_FILE to the folder of a ModelEvaluation.

    Raises:
      tensorflow.errors.OpError: the file cannot be written.
    """
    slices = [
        [*slice_key, {name: counts.to_json() for name, counts in models.items()}]
        for slice_key, models in sorted(results.slices.items())
    ]
    content = {"settings": results.settings.model_dump(), "slices": slices}
    if results.other is not None:
        content["other_classes"] = results.other._asdict()
    if results.known:
        content["known"] = results.known
    _write_json(folder, COUNTS_FILE, content)
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
    # Versions without other classes than these wrote no file of the classes.
    has_file = fileio.exists(os.path.join(evaluation, LABELS_FILE))
    labels = read_labels(evaluation) if has_file else SENTIMENT
    other = stored.get("other_classes")
    return Results(
        labels,
        # Without validation: a later version may have other settings.
        Evaluation.model_construct(**stored["settings"]),
        {
            (feature, value): {
                name: Counts.from_json(counts, labels) for name, counts in models.items()
            }
            for feature, value, models in stored["slices"]
        },
        OtherModel(**other) if other else None,
        stored.get("known", ""),
    )


def write_predictions(
    folder: str,
    sampled: Mapping[str, Any],
    mistakes: Sequence[WrongAnswer],
    confusions: ConfusedReviews,
) -> None:
    """Write SAMPLE_FILE, MISTAKES_FILE and CONFUSIONS_FILE to the folder of a ModelEvaluation.

    Args:
      folder: the folder.
      sampled: the content of SAMPLE_FILE.
      mistakes: the most confident mistakes.
      confusions: reviews of the most frequent confusions; if it is empty, CONFUSIONS_FILE is not
        written.

    Raises:
      tensorflow.errors.OpError: a file cannot be written.
    """
    _write_json(folder, SAMPLE_FILE, sampled)
    _write_json(folder, MISTAKES_FILE, list(map(asdict, mistakes)))
    if confusions:
        content = [
            {
                "label": label,
                "predicted": predicted,
                "texts": [{"text": each.text, "probability": each.probability} for each in wrong],
            }
            for (label, predicted), wrong in confusions.items()
        ]
        _write_json(folder, CONFUSIONS_FILE, content)


def read_mistakes(evaluation: str) -> list[WrongAnswer]:
    """Return the mistakes that `write_predictions` wrote to the folder of a ModelEvaluation.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: the file was deleted.
      ValueError, KeyError: the file is damaged.
    """
    return list(map(WrongAnswer.from_json, read_json(evaluation, MISTAKES_FILE)))


def write_changed(folder: str, changed: Changed) -> None:
    """Write CHANGED_ANSWERS_FILE to the folder of a ModelEvaluation.

    Raises:
      tensorflow.errors.OpError: the file cannot be written.
    """
    regressions = list(map(asdict, changed.regressions))
    _write_json(folder, CHANGED_ANSWERS_FILE, {**changed._asdict(), "regressions": regressions})


def read_changed(evaluation: str) -> Changed | None:
    """Return what `write_changed` wrote to the folder of a ModelEvaluation.

    The result is None without a baseline, and for the evaluations of earlier versions.

    Raises:
      tensorflow.errors.OpError: the file cannot be read.
      ValueError, KeyError: the file is damaged.
    """
    if not fileio.exists(os.path.join(evaluation, CHANGED_ANSWERS_FILE)):
        return None
    stored = read_json(evaluation, CHANGED_ANSWERS_FILE)
    regressions = list(map(WrongAnswer.from_json, stored["regressions"]))
    return Changed(stored["newly_wrong"], stored["newly_right"], regressions)


def read_confusions(evaluation: str) -> ConfusedReviews:
    """Return the confused reviews of the folder of a ModelEvaluation, see `write_predictions`.

    The result is empty without mistakes, and for two classes that an earlier version evaluated.

    Raises:
      tensorflow.errors.OpError: the file cannot be read.
      ValueError, KeyError: the file is damaged.
    """
    if not fileio.exists(os.path.join(evaluation, CONFUSIONS_FILE)):
        return {}
    found = {}
    for each in read_json(evaluation, CONFUSIONS_FILE):
        label, predicted = each["label"], each["predicted"]
        found[label, predicted] = [
            WrongAnswer(text["text"], label, predicted, text["probability"])
            for text in each["texts"]
        ]
    return found


def stored_predictions(evaluation: str, examples: Iterable[bytes]) -> dict[int, Any]:
    """Return the predictions of the evaluation for some Examples.

    Args:
      evaluation: the folder of a ModelEvaluation.
      examples: serialized Examples.

    Returns:
      Index of an Example in `examples` -> its probability of the second of two classes; or, of
      more classes, class -> probability, of its most probable classes. An Example outside of the
      stored sample is missing.

    Raises:
      tfx.dsl.io.fileio.NotFoundError: SAMPLE_FILE was deleted.
      ValueError: SAMPLE_FILE is damaged.
    """
    stored = read_json(evaluation, SAMPLE_FILE)
    digests = map(digest, examples)
    return {n: _by_class(stored[found]) for n, found in enumerate(digests) if found in stored}


def _by_class(prediction: Any) -> Any:
    # The keys of an object of JSON are texts.
    if isinstance(prediction, dict):
        return {int(label): probability for label, probability in prediction.items()}
    return prediction


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
