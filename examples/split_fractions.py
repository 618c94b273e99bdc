"""The sizes of the splits eval and test that a hash of the text makes, and the texts in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from core.settings import Section

if TYPE_CHECKING:
    import numpy as np  # the settings of a run contain this class, and are read without NumPy

_PARTS = 10_000
"""The number of parts into which the text keys are divided for the fractions of the splits."""
_PARTS_BEFORE_TEST = 1_000
"""The parts before the first one of test, also if eval has fewer, so that the size of the eval
split does not change the test split."""

# With two of the greatest fractions, a fifth of the texts is left for training.
_HeldOutFraction = Annotated[float, Field(ge=0.001, le=0.4)]


class SplitFractions(Section):
    """The sizes of the splits eval and test that have no files of their own."""

    eval: _HeldOutFraction = 0.1
    """Fraction of the texts that the eval split gets, if it has no files of its own. A small one
    leaves more texts for training, but its accuracy after each epoch is less certain."""
    test: _HeldOutFraction = 0.1
    """Fraction of the texts that the test split gets, if it has no files of its own and is not the
    newest span of a window."""

    def parts(self, named: Collection[str] = ()) -> dict[str, range]:
        """Return split without files of its own -> the parts of the text keys that it gets.

        Args:
          named: the splits that have files of their own.

        Returns:
          The numbers of parts, see `parts_of_keys`.
        """
        in_eval = round(self.eval * _PARTS)
        test_start = max(in_eval, _PARTS_BEFORE_TEST)
        in_test = round(self.test * _PARTS)
        found = {"eval": range(in_eval), "test": range(test_start, test_start + in_test)}
        return {split: parts for split, parts in found.items() if split not in named}

    def test_texts_in_train(self, other: SplitFractions, named: Collection[str]) -> bool:
        """Return whether texts of the test split are in the train split that `other` leaves.

        Args:
          other: the fractions of another training.
          named: the splits that have files of their own in both trainings.
        """
        held_out = {part for parts in other.parts(named).values() for part in parts}
        return not held_out.issuperset(self.parts(named).get("test", ()))


def parts_of_keys(keys: np.ndarray) -> np.ndarray:
    """Return the part of each text.

    Args:
      keys: the hashes of the texts, uint64 [texts].

    Returns:
      uint64 [texts], below 10,000. The last digit of a hash counts most: earlier versions compared
      it alone, for fractions of 0.1.
    """
    parts: np.ndarray = keys % 10 * 1_000 + keys // 10 % 1_000
    return parts
