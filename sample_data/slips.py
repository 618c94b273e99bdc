"""Typing habits: typing errors, and reviewers who never use capitals or apostrophes."""

from sample_data.dice import Dice

# (fraction of reviewers, fraction of their words with a typing error)
CARELESSNESS = ((0.75, 0.004), (0.2, 0.02), (0.05, 0.06))


def mistype(dice: Dice, word: str) -> str:
    """Return a word with two letters swapped, one missing or one doubled; keep short words."""
    if len(word) < 4 or not word.isalpha():
        return word
    at = 1 + int(dice.share() * (len(word) - 2))
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return dice.pick((swapped, word[:at] + word[at + 1 :], word[: at + 1] + word[at:]))


class Typist:
    """The typing habits of one reviewer, which apply to the title and the body."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.carelessness = dice.weighted(CARELESSNESS)
        self.lower_case = dice.chance(0.06)
        self.no_apostrophes = dice.chance(0.09)
        self.loud_title = dice.chance(0.06)
        self.excited = dice.chance(0.1)

    def title(self, text: str) -> str:
        """Return the title with typing errors."""
        typed = self.type(text)
        if self.loud_title:
            return typed.upper()
        return typed + "!" if self.excited and self.dice.chance(0.5) else typed

    def type(self, text: str) -> str:
        """Return a text with typing errors."""
        dice = self.dice
        words = [
            mistype(dice, word) if dice.chance(self.carelessness) else word
            for word in text.split(" ")
        ]
        typed = " ".join(words)
        if self.no_apostrophes:
            typed = typed.replace("'", "")
        return typed.lower() if self.lower_case else typed

    def end(self) -> str:
        """Return the punctuation at the end of a sentence."""
        if self.excited and self.dice.chance(0.2):
            return self.dice.pick(("!", "!!", "!"))
        return "..." if self.dice.chance(0.03) else "."
