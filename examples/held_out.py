"""How the test split of a training is held out, and whether another model may have read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from core.errors import InputError
from examples.split_fractions import SplitFractions

ORIGIN_FILE = os.path.join("assets.extra", "origin.json")
"""The file in a SavedModel with its origin, see `trainer_module.weights.origin`, and its `HeldOut`.
TensorFlow and TensorFlow Serving ignore `assets.extra`."""


@dataclass(frozen=True)
class HeldOut:
    """How the test split of a training is held out.

    Attributes:
      unseen_span: see `trainer_module.settings.TrainingJob`.
      splits: see `trainer_module.settings.TrainingJob`; None: unknown, as of models of earlier
        versions.
      split_fractions: see `trainer_module.settings.TrainingJob`. Models of earlier versions have
        the defaults.
    """

    unseen_span: int | None = None
    splits: Mapping[str, str] | None = None
    split_fractions: SplitFractions = field(default_factory=SplitFractions)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of ORIGIN_FILE, which `held_out` reads."""
        fractions = self.split_fractions.model_dump()
        return {
            "unseen_span": self.unseen_span,
            "splits": self.splits,
            "split_fractions": fractions,
        }

    def may_be_known_to(self, other: HeldOut | None) -> str:
        """Return why a model with `other` may have been trained on this test split, as a predicate.

        A hash of the text decides the splits of an input without spans and `data.splits`. A model
        of such an input is trained on no text of another one's test split if the test split has the
        same or a smaller fraction of the texts.

        Args:
          other: how the test split of the other model was held out; None: unknown.

        Returns:
          Such as `is of later spans`; empty if the model was not trained on this test split, or if
          nothing is known about it.
        """
        if other is None:
            return ""
        ours, theirs = self.unseen_span, other.unseen_span
        if ours is None and theirs is not None:
            return "was trained with spans"
        if ours is not None and theirs is None:
            return "was trained without spans"
        if ours is not None and theirs is not None and theirs != ours:
            return "is of later spans" if theirs > ours else ""
        if None not in (self.splits, other.splits) and self.splits != other.splits:
            return "was trained with other data.splits"
        if self.split_fractions.test_texts_in_train(other.split_fractions, self.splits or {}):
            return "was trained with other data.split_fractions"
        return ""


def read_origin(model: str) -> dict[str, Any]:
    """Return the content of ORIGIN_FILE; empty without the file, as in models of other programs.

    Args:
      model: the folder of a SavedModel.

    Raises:
      tensorflow.errors.OpError: the file cannot be read.
      InputError: the file is damaged.
    """
    file = os.path.join(model, ORIGIN_FILE)
    try:
        with tf.io.gfile.GFile(file) as stream:
            return dict(json.load(stream))
    except tf.errors.NotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{file} is damaged ({error}); write the model again, or remove this version"
        ) from None


def held_out(origin: Mapping[str, Any]) -> HeldOut | None:
    """Return how the test split of a model was held out; None if it is unknown.

    Args:
      origin: the result of `read_origin`.
    """
    if not origin:
        return None
    fractions = SplitFractions(**origin.get("split_fractions", {}))
    return HeldOut(origin.get("unseen_span"), origin.get("splits"), fractions)
