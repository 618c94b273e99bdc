"""Plain sentences about a product: short, colloquial, favourable or not.

Most patterns apply to both sides. They contain words of the speaker's own side ("it is great"), or
they deny words of the other side ("it is not bad at all"). So only these words and their neighbours
distinguish the sides.
"""

import re
from collections.abc import Callable

from sample_data import verbs
from sample_data.banks import GENERAL, LEXICON, PATTERNS, STOCK, TOPICS, TRAITS, Template
from sample_data.dice import Dice

DENIED = 0.08
"""Fraction of judgements that deny a word of the other side."""
SORTS = (
    (0.16, "stock"),
    (0.3, "general"),
    (0.17, "topic"),
    (0.13, "adjective"),
    (0.11, "act"),
    (0.05, "feeling"),
    (0.04, "state"),
    (0.04, "trait"),
    (0.03, "part"),
)
SCENES = 0.06
"""Fraction of sentences that describe a scene in neutral words around a judgement."""
CONTRAST = 0.03
LEAD = 0.05

_FIELD = re.compile(r"\{(\w+)\}")
_AN = re.compile(r"\b([Aa]) (?=(?!one|use|uni|usb|eu)[aeiou]|hour|honest)")
# (singular, plural); `not` is written in full as often as it is contracted.
_AGREEING = {
    "is": ("is", "are"),
    "was": ("was", "were"),
    "isnt": ("isn't|is not", "aren't|are not"),
    "wasnt": ("wasn't|was not", "weren't|were not"),
    "hasnt": ("hasn't|has not|has never", "haven't|have not|have never"),
    "doesnt": ("doesn't|does not", "don't|do not"),
    "keep": ("keeps", "keep"),
    "seem": ("seems", "seem"),
    "make": ("makes", "make"),
}
_NEGATIONS = {
    "dont": "don't|do not",
    "didnt": "didn't|did not",
    "wouldnt": "wouldn't|would not",
    "cant": "can't|cannot|can not|couldn't|could not",
    "havent": "haven't|have not",
    "wont": "won't|will not",
}
_PLACES = {
    "person": "people",
    "time": "times",
    "use": "uses",
    "long": "long_times",
    "things": "many_things",
    "part": "parts",
    "parts": "many_parts",
    "noun": "nouns",
    "place": "places",
    "occasion": "occasions",
}
_NO_VERY = (
    "a ", "an ", "the ", "my ", "worth", "top", "first", "spot", "legit", "junk", "garb", "trash",
    "rubb", "crap", "too ", "not ", "nothing", "money", "past ", "ten ",
)  # fmt: skip
_FORMS: dict[str, Callable[[str], str]] = {
    "act": str,
    "feel": str,
    "feels": verbs.third,
    "felt": verbs.past,
    "acts1": verbs.third,
    "acted": verbs.past,
    "acting": verbs.progressive,
    "acteds": verbs.perfect,
}


class Speaker:
    """The plain sentences of one reviewer about one product."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.topic = dice.pick(TOPICS)
        self.thing = dice.pick(LEXICON["things"] if dice.chance(0.3) else self.topic.things)
        self.trait = dice.pick(TRAITS)
        self.plural = False

    def say(self, favourable: bool) -> str:
        """Return a sentence, favourable or not, without capital and full stop."""
        text = self._scene(favourable) if self.dice.chance(SCENES) else self._saying(favourable)
        if self.dice.chance(CONTRAST):
            other = self._judgement(self.dice.pick(("adjective", "trait")), not favourable)
            text = self.dice.pick(PATTERNS["contrasts"]).format(other=other, own=text)
        if self.dice.chance(LEAD):
            text = f"{self.dice.pick(LEXICON['neutral_leads'])} {text}"
        return _AN.sub(r"\1n ", text)

    def _scene(self, favourable: bool) -> str:
        self.trait = self.dice.pick(TRAITS)
        return self._fill(self.dice.pick(PATTERNS["scene"]), favourable)

    def _saying(self, favourable: bool) -> str:
        sort = self.dice.weighted(SORTS)
        sayings = {"stock": STOCK, "general": GENERAL, "topic": self.topic.sayings}.get(sort)
        if sayings:
            return self._template(self.dice.weighted(sayings[favourable]), favourable)
        return self._judgement(sort, favourable)

    def judge(self, verdict: Template) -> str:
        """Return a verdict of `banks.DEGREES`, without capital and full stop."""
        text = "".join(self.dice.pick(choices) for choices in verdict)
        # The fields of a verdict have no side.
        return _AN.sub(r"\1n ", self._fill(" ".join(text.split()), favourable=True))

    def _template(self, template: Template, favourable: bool) -> str:
        text = "".join(self.dice.pick(choices) for choices in template)
        return self._fill(" ".join(text.split()), favourable)

    def _judgement(self, sort: str, favourable: bool) -> str:
        """Return a judgement with words of the own side, or denied words of the other side."""
        self.trait = self.dice.pick(TRAITS)
        key = f"{'denied' if self.dice.chance(DENIED) else 'plain'} {sort}"
        # Faults and virtues have different patterns: "it broke in a week", "it never broke".
        sided = f"{key} {'for' if favourable else 'against'}"
        patterns = PATTERNS.get(key, []) + PATTERNS.get(sided, [])
        return self._fill(self.dice.pick(patterns), favourable)

    def _fill(self, pattern: str, favourable: bool) -> str:
        """Return the pattern with its fields filled in from left to right."""
        self.plural = False
        return _FIELD.sub(lambda field: self._word(field[1], favourable), pattern)

    def _word(self, field: str, favourable: bool) -> str:
        pick = self.dice.pick
        if field in _PLACES:
            return pick(LEXICON[_PLACES[field]])
        if field in _AGREEING:
            return pick(_AGREEING[field][self.plural].split("|"))
        if field in _NEGATIONS:
            return pick(_NEGATIONS[field].split("|"))
        if field.removeprefix("trait_") in _AGREEING:
            return pick(_AGREEING[field.removeprefix("trait_")][self.trait.plural].split("|"))
        if field.startswith("not_"):
            return self._own_word(field.removeprefix("not_"), not favourable)
        common = self._common_word(field)
        return self._own_word(field, favourable) if common is None else common

    def _common_word(self, field: str) -> str | None:
        """Return a neutral word; None if the field is for a word of one side."""
        pick = self.dice.pick
        if field == "it":
            self.plural = self.dice.chance(0.15)
            if self.plural:
                thing = pick(LEXICON["many_things"])
                return pick(("they", "they", "these", f"these {thing}", f"the {thing}"))
            return pick(
                ("it", "it", "it", "this", "mine", f"this {self.thing}", f"the {self.thing}")
            )
        if field == "them":
            return "them" if self.dice.chance(0.15) else pick(("it", "it", "this", "this one"))
        if field == "this":
            thing = pick(LEXICON["many_things"])
            return pick(("it", "this", f"this {self.thing}", f"my {self.thing}", f"these {thing}"))
        if field == "very":
            return self._very()
        return {"thing": self.thing, "trait": self.trait.noun}.get(field)

    def _very(self) -> str:
        return f"{self.dice.pick(LEXICON['very'])} " if self.dice.chance(0.5) else ""

    def _own_word(self, field: str, favourable: bool) -> str:
        """Return a word for or against the product."""
        if field == "verdict":
            return self._saying(favourable)
        pick, side = self.dice.pick, "good" if favourable else "bad"
        if field == "trait_word":
            return pick(self.trait.words[favourable])
        if field in ("adjective", "very_adjective"):
            adjective = self.dice.common(LEXICON[side])
            bare = field == "adjective" or adjective.startswith(_NO_VERY)
            return adjective if bare else self._very() + adjective
        if field in ("feel", "feels", "felt"):
            return _FORMS[field](self.dice.common(LEXICON[f"{side}_feelings"]))
        if field in ("does_so", "did_so", "do_so"):
            verb = pick(LEXICON["plain_verbs"])
            if field == "did_so":
                return verbs.past(verb)
            return verb if field == "do_so" and self.plural else verbs.third(verb)
        if field in ("epithet", "state", "manner"):
            return self.dice.common(LEXICON[f"{side}_{field}s"])
        verb = self.dice.common(LEXICON[f"{side}_acts"]).replace(
            "{its}", "their" if self.plural else "its"
        )
        if field == "acts":
            return verb if self.plural else verbs.third(verb)
        return _FORMS[field](verb)
