"""The mistakes of a model: the effects of their words, and groups with something in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from components.evaluator.files import WrongAnswer
from components.serving_check.results import GoldenMistake
from preprocessing.labels import Labels, model_labels
from serving.explain import Part, parts, variants
from serving.predict_text import load_predict_text

_WORDS = 3
"""Number of the words of a review that count as reasons of its answer."""
_MOST_SHORT = 5
"""Maximum number of words of a very short review."""
_SHORT = f"at most {_MOST_SHORT} words"
"""What very short reviews have in common."""
_AT_LEAST = 2
"""Minimum number of mistakes of a group with something in common."""
_PUNCTUATION = " \t\n.,;:!?\"'()[]…„“”‚‘’«»¡¿-"


@dataclass(frozen=True)
class ExplainedMistake(WrongAnswer):
    """A mistake with the effects of its words.

    Attributes:
      parts: the parts of the text.
    """

    parts: Sequence[Part]


class Group(NamedTuple):
    """Mistakes that have the label, the answer, and usually more in common.

    Attributes:
      label: the name of the class of the reviews.
      predicted: the name of the class of the answers.
      common: what they have in common, as a clause; empty if it is nothing else.
      mistakes: the mistakes.
    """

    label: str
    predicted: str
    common: str
    mistakes: Sequence[ExplainedMistake]


def explain(model: str, mistakes: Sequence[WrongAnswer]) -> list[ExplainedMistake]:
    """Return mistakes with the effects of their words.

    Args:
      model: the folder of the SavedModel that was evaluated.
      mistakes: its mistakes.

    Raises:
      InputError: the model is missing or incomplete.
      OSError, ValueError, tensorflow.errors.OpError: the model is damaged.
    """
    predict_text, labels = load_predict_text(model), model_labels(model)
    explained = []
    for mistake in mistakes:
        scores = predict_text(variants(mistake.text))[labels.scores_name]
        probabilities = labels.shown(scores, mistake.predicted)
        found = parts(mistake.text, probabilities.tolist())
        explained.append(ExplainedMistake(**vars(mistake), parts=found))
    return explained


def grouped(mistakes: Sequence[ExplainedMistake], labels: Labels) -> list[Group]:
    """Return groups of mistakes, the largest one first; each mistake is in one group.

    The mistakes of a group have the label and the answer in common, and also a word that
    contributed much to the answer, or that they are very short. The last group of a label and an
    answer has the other mistakes.

    Args:
      mistakes: the result of `explain`.
      labels: the classes.
    """
    by_pair: dict[tuple[int, int], list[ExplainedMistake]] = {}
    for mistake in mistakes:
        by_pair.setdefault((mistake.label, mistake.predicted), []).append(mistake)
    present = Counter(_word(word) for mistake in mistakes for word in set(_words(mistake)))
    groups = [
        Group(labels.names[label], labels.names[predicted], common, members)
        for (label, predicted), found in by_pair.items()
        for common, members in _with_common(found, labels, present)
    ]
    # Groups without anything else in common are last.
    return sorted(groups, key=lambda group: (not group.common, -len(group.mistakes)))


def highlighted(text: Sequence[Part]) -> list[tuple[str, float]]:
    """Return (text, effect) of each part of a review, with effects from -1 to 1.

    The effects are divided by the largest absolute effect in the review.
    """
    effects = [part.effect or 0.0 for part in text]
    largest = max(map(abs, effects), default=0.0) or 1.0
    return [(part.text, effect / largest) for part, effect in zip(text, effects, strict=True)]


def answer(mistake: WrongAnswer, labels: Labels) -> str:
    """Return a clause about the wrong answer of the model to a review."""
    return _answered(labels.names[mistake.predicted], mistake.probability, labels)


def golden_answer(mistake: GoldenMistake, labels: Labels) -> str:
    """Return a clause about the wrong answer of the model to a golden sentence."""
    name = mistake.predicted
    if name is None:
        [predicted] = labels.decide([mistake.probability]).tolist()
        name = labels.names[predicted]
    return _answered(name, mistake.probability, labels)


def _answered(name: str, probability: float, labels: Labels) -> str:
    return f"answered {name} with probability {labels.confidence(probability, name):.3f}"


def _with_common(
    mistakes: Sequence[ExplainedMistake], labels: Labels, present: Mapping[str, int]
) -> Iterator[tuple[str, list[ExplainedMistake]]]:
    """Yield what some mistakes have in common, and these mistakes; at the end the other ones.

    Args:
      mistakes: mistakes with the same label and answer.
      labels: the classes.
      present: the result of `_word` -> number of all mistakes that contain the word.
    """
    remaining = list(mistakes)
    while remaining:
        reasons = [_reasons(mistake, labels) for mistake in remaining]
        counted = Counter(reason for each in reasons for reason in each)
        # A word such as `the` is in many reviews, and seldom among the strongest ones.
        typical = {
            reason: number
            for reason, number in counted.items()
            if number >= _AT_LEAST and 2 * number > present.get(reason, 0)
        }
        if not typical:
            yield "", _shortest_first(remaining)
            return
        # Of equally frequent reasons, the one of the most confident mistake.
        common = max(typical, key=lambda reason: typical[reason])
        members = [m for m, each in zip(remaining, reasons, strict=True) if common in each]
        yield common, _shortest_first(members)
        remaining = [m for m, each in zip(remaining, reasons, strict=True) if common not in each]


def _reasons(mistake: ExplainedMistake, labels: Labels) -> list[str]:
    """Return clauses about what may explain an answer: its strongest words, and _SHORT."""
    sign = labels.effect_sign(mistake.predicted)
    effects: dict[str, float] = {}
    for part in mistake.parts:
        word = _plain(part)
        if word and part.effect is not None and sign * part.effect > 0:
            effects[word] = max(effects.get(word, 0.0), sign * part.effect)
    strongest = map(_word, sorted(effects, key=lambda word: -effects[word])[:_WORDS])
    is_short = 0 < len(_words(mistake)) <= _MOST_SHORT
    return [*strongest, _SHORT] if is_short else [*strongest]


def _words(mistake: ExplainedMistake) -> list[str]:
    return [word for word in map(_plain, mistake.parts) if word]


def _plain(part: Part) -> str:
    """Return a word without its punctuation, in lower case; empty for spaces."""
    return part.text.casefold().strip(_PUNCTUATION)


def _word(word: str) -> str:
    """Return the clause about a word that reviews have in common."""
    return f"the word “{word}”"


def _shortest_first(mistakes: list[ExplainedMistake]) -> list[ExplainedMistake]:
    """Return mistakes in an order in which the first ones are read quickly."""
    return sorted(mistakes, key=lambda mistake: sum(len(part.text) for part in mistake.parts))
