"""The interface of the two readers of ReviewExampleGen: of all files together, or span by span."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence

from components.review_example_gen.found_labels import FoundLabels
from components.review_example_gen.read_unit import UnitResult
from components.review_example_gen.units import Source


class Reader(abc.ABC):
    """A reader of the files of an input."""

    @abc.abstractmethod
    def labels(self, sources: Sequence[Source]) -> FoundLabels:
        """Return the labels of the files.

        Args:
          sources: the pieces of all files.

        Raises:
          InputError: a file cannot be read, or a file of a window of spans changes meanwhile.
          OSError, tensorflow.errors.OpError: a file cannot be written.
        """

    @abc.abstractmethod
    def read(self, sources: Sequence[Source], max_examples: Mapping[str, int]) -> list[UnitResult]:
        """Read the files, and write those of the splits.

        Args:
          sources: the pieces of all files, with layouts that decide the class of each label.
          max_examples: split -> maximum number of its reviews; a split without a limit is missing.

        Returns:
          The units in their order.

        Raises:
          InputError: a file cannot be read, or a file of a window of spans changes meanwhile.
          OSError, tensorflow.errors.OpError: a file cannot be written.
        """

    @abc.abstractmethod
    def files(self, units: Iterable[UnitResult]) -> dict[str, int]:
        """Return path of a shard -> the number of its span; empty for an input read as a whole.

        Args:
          units: the result of `read`.
        """

    @abc.abstractmethod
    def remove_old(self) -> None:
        """Remove the files of earlier runs that no later run will use."""
