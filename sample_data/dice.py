"""Random choices that come out the same on every supported Python version."""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws made from `random.Random.random` alone, the one method whose stream is guaranteed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.share() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self.share() * len(options))]

    def common(self, options: Sequence[T]) -> T:
        """One of the options, the first ones most often: the first half in 6 of 10 draws."""
        return options[int(self.share() ** 1.36 * len(options))]

    def weighted(self, options: Sequence[tuple[float, T]]) -> T:
        """One of the (weight, option) pairs' options."""
        point = self.share() * math.fsum(weight for weight, _ in options)
        for weight, option in options:
            point -= weight
            if point < 0:
                return option
        return options[-1][1]
