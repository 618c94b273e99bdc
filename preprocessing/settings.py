"""The settings of the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from core.settings import PositiveInt, Section
from preprocessing.labels import Labels


class Transform(Section):
    """The features of a text."""

    ngram_buckets: Annotated[int, Field(ge=2, le=2**30)] = 2**20
    """Rows of the hashed n-gram table. For many classes a model has fewer, so that the table has at
    most 2^25 weights."""
    ngrams: Annotated[int, Field(ge=1, le=3)] = 2
    """Length of the longest word n-gram."""
    openings: list[PositiveInt] = [2, 4, 8]
    """Lengths of openings in words: an opening is the beginning of a text, such as its title. The
    n-grams in each opening count once more, with weights of their own."""
    character_ngrams: list[Annotated[int, Field(ge=2, le=8)]] = []
    """Lengths of n-grams of characters within a word; `[3, 4]` helps with short texts, and with
    languages that have many forms of a word."""
    vocabulary_size: Annotated[int, Field(ge=10)] = 20_000
    """Words in the vocabulary of a sequence model."""
    max_tokens: PositiveInt = 500
    """Number of words of a text that a sequence model reads, from its beginning. With
    `training.jit_compile` and on a TPU it also limits the n-grams that a training reads."""


@dataclass(frozen=True)
class TransformConfig:
    """The `custom_config` of Transform, by which the DAG passes settings to `preprocessing_fn`.

    Attributes:
      features: the names of the features that the model reads.
      transform: the keys of the `transform` section on which these features depend.
    """

    features: tuple[str, ...]
    transform: Transform

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> TransformConfig:
        """Return the config of which `config` has the JSON values, see `to_dict`.

        Raises:
          pydantic.ValidationError: `config` has an unknown key, or a wrong value.
        """
        settings = {key: value for key, value in config.items() if key != "features"}
        return cls(tuple(config["features"]), Transform.model_validate(settings))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON values, without the keys of `transform` that the model does not use."""
        return {**self.transform.model_dump(exclude_unset=True), "features": list(self.features)}


MAX_WEIGHTS = 2**25
"""The greatest number of weights of n-grams for more than two classes: 128 MB of float32."""


def ngram_rows(buckets: int, labels: Labels) -> int:
    """Return the number of different n-grams that a model and the counts by class distinguish.

    For two classes it is `ngram_buckets`. A table for more classes has a column for each of them.
    If it would have more than MAX_WEIGHTS cells, it has a half, a quarter, … of the rows, and the
    row of an id is the remainder.

    Args:
      buckets: `ngram_buckets`.
      labels: the classes.
    """
    rows = buckets
    while not labels.is_binary and rows > 2 and rows * labels.number > MAX_WEIGHTS:
        rows = -(-rows // 2)
    return rows
