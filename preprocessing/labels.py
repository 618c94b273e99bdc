"""The classes that a model predicts: one value, which travels with the Examples and the model."""

from __future__ import annotations

import json
import os
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from core import storage
from core.digests import read_digests
from core.errors import InputError, write_again

LABELS_FILE = "labels.json"
"""The file of the classes in Examples, in a transform graph and in the assets of a SavedModel."""
THRESHOLD = 0.5
"""The probability of the second of two classes above which it is the predicted one."""


@dataclass(frozen=True)
class Labels:
    """The classes of a task, and the decision between them.

    Attributes:
      names: the name of each class. The index of a class is its label in Examples and in answers.
      is_ordered: whether the classes are the ascending values of a scale, such as stars.
      label_scale: the scale of the labels in the files of the training, one of
        `reading.labels.SCALES`; empty if it was not detected, was not the same for all files, or is
        not recorded. It is not compared, because it does not change the classes.
      columns: the names of the title, which may be empty, and of the text in the files of the
        training, in lower case, of each file in which the column of the labels decided them. Files
        without labels are read by the same columns. They are not compared either.

    Raises:
      ValueError: there are fewer than two names, or two equal ones.
    """

    names: tuple[str, ...]
    is_ordered: bool = False
    label_scale: str = field(default="", compare=False)
    columns: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise ValueError(f"two or more classes with different names are required: {self.names}")

    @property
    def number(self) -> int:
        """The number of classes."""
        return len(self.names)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, so that a score is one number."""
        return self.number == 2

    @property
    def logits(self) -> int:
        """The number of logits of a review: that of the second class, or one for each class."""
        return 1 if self.is_binary else self.number

    @property
    def noun(self) -> str:
        """The word for a text in messages: `review` if the classes rate it, otherwise `text`."""
        return "review" if self.is_ordered or self.names == SENTIMENT.names else "text"

    @property
    def nouns(self) -> str:
        """The word for several texts in messages."""
        return f"{self.noun}s"

    @property
    def scores_name(self) -> str:
        """The output of a model with the scores, see `decide`."""
        return "probability" if self.is_binary else "probabilities"

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """The shape of the scores of one text, see `decide`."""
        return () if self.is_binary else (self.number,)

    def decide(self, scores: Any) -> Any:
        """Return the predicted label of each review, int64 [reviews].

        Args:
          scores: of two classes, the probability of the second one, float [reviews]; of more
            classes, the probability of each one, float [reviews, classes].
        """
        # `predict` with a running server and a run without a change do not load NumPy.
        import numpy as np

        if self.is_binary:
            return (np.asarray(scores) > THRESHOLD).astype(np.int64)
        return np.argmax(scores, axis=-1).astype(np.int64)

    def of_label(self, scores: Any, labels: Any) -> Any:
        """Return the probability of a label of each review, float [reviews].

        Args:
          scores: see `decide`.
          labels: the labels, int64 [reviews].
        """
        import numpy as np

        scores, labels = np.asarray(scores), np.asarray(labels)
        if self.is_binary:
            return np.where(labels == 1, scores, 1 - scores)
        return np.take_along_axis(scores, labels[:, np.newaxis], axis=1)[:, 0]

    def shown(self, scores: Any, answers: Any) -> Any:
        """Return the probability that accompanies each answer and is explained, float [reviews].

        Of two classes it is that of the second one, whatever the answer is; of more, that of the
        answer.

        Args:
          scores: see `decide`.
          answers: the labels of the answers, int64 [reviews]; or one label for all reviews.
        """
        import numpy as np

        scores = np.asarray(scores)
        if self.is_binary:
            return scores
        return self.of_label(scores, np.broadcast_to(answers, len(scores)))

    def confidence(self, shown: float, answer: str) -> float:
        """Return the probability of an answer.

        Args:
          shown: the probability that accompanies it, see `shown`.
          answer: the name of the class.
        """
        return 1 - shown if self.is_binary and answer == self.names[0] else shown

    def effect_sign(self, answer: int) -> int:
        """Return 1 if a word that raises the shown probability is in favour of the answer, else -1.

        Args:
          answer: the label of the answer; see `shown`.
        """
        return -1 if self.is_binary and answer == 0 else 1

    def by_class(self, scores: Any) -> Any:
        """Return the probability of each class, float [reviews, classes].

        Args:
          scores: see `decide`.
        """
        import numpy as np

        return np.stack([1 - scores, scores], axis=1) if self.is_binary else scores


SENTIMENT = Labels(("negative", "positive"))
"""The classes of reviews without `data.labels`."""


def plain_name(name: str) -> str:
    """Return the name of a class in settings as the names of classes are written.

    Two texts that look alike may differ in the form in which Unicode writes a letter.

    Args:
      name: the name, perhaps with white space around it.
    """
    return unicodedata.normalize("NFC", name.strip())


def write_labels(folder: str, labels: Labels) -> None:
    """Write LABELS_FILE into an existing folder.

    Args:
      folder: local, or a URL that TensorFlow writes.
      labels: the classes.

    Raises:
      OSError: the file cannot be written.
    """
    content: dict[str, Any] = {"names": labels.names, "is_ordered": labels.is_ordered}
    if labels.label_scale:
        content["label_scale"] = labels.label_scale
    if labels.columns:
        content["columns"] = labels.columns
    text = json.dumps(content, ensure_ascii=False, indent=1)
    storage.write(os.path.join(folder, LABELS_FILE), f"{text}\n".encode())


def model_labels(model: str) -> Labels:
    """Return the classes of a SavedModel; SENTIMENT for one without LABELS_FILE.

    Earlier versions and other programs export such a model.

    Args:
      model: its folder, or a URL that TensorFlow reads.

    Raises:
      InputError: the file of the classes is damaged, or it is missing although the digests of a
        pushed version list it.
      OSError: the file cannot be read.
    """
    remedy = "push the model again, or remove this version"
    assets = os.path.join(model, "assets")
    file = os.path.join(assets, LABELS_FILE)
    if storage.is_file(file):
        return _read(assets, remedy)
    if os.path.join("assets", LABELS_FILE) in read_digests(model):
        raise InputError(f"{file} is missing; {remedy}")
    return SENTIMENT


def read_labels(folder: str) -> Labels:
    """Return the classes in the LABELS_FILE of a folder.

    Args:
      folder: local, or a URL that TensorFlow reads.

    Raises:
      InputError: there is no such file, or it is damaged.
      OSError: the file cannot be read.
    """
    file = os.path.join(folder, LABELS_FILE)
    remedy = write_again("it")
    if not storage.is_file(file):
        raise InputError(f"{file} is missing; {remedy}")
    return _read(folder, remedy)


def _read(folder: str, remedy: str) -> Labels:
    """Return the classes in an existing file; `remedy` is the end of the message if it is damaged.

    Raises:
      InputError: the file is damaged.
      OSError: the file cannot be read.
    """
    file = os.path.join(folder, LABELS_FILE)
    try:
        stored = json.loads(storage.read(file))
        # Earlier versions did not record the scale and the columns.
        scale = str(stored.get("label_scale", ""))
        columns = tuple((str(title), str(text)) for title, text in stored.get("columns", ()))
        return Labels(tuple(map(str, stored["names"])), bool(stored["is_ordered"]), scale, columns)
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged ({error}); {remedy}") from None
