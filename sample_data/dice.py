"""Random choices that are reproducible on every supported Python version."""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random draws with `random.Random.random`, the only method whose results Python guarantees."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def share(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.share() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options, all equally likely."""
        return options[int(self.share() * len(options))]

    def common(self, options: Sequence[T]) -> T:
        """Return one of the options; the first half of them is returned in 6 of 10 draws."""
        return options[int(self.share() ** 1.36 * len(options))]

    def weighted(self, options: Sequence[tuple[float, T]]) -> T:
        """Return the option of one of the (weight, option) pairs, in proportion to the weights."""
        point = self.share() * math.fsum(weight for weight, _ in options)
        for weight, option in options:
            point -= weight
            if point < 0:
                return option
        return options[-1][1]
