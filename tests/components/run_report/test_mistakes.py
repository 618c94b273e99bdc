"""Mistakes that are grouped by what they have in common."""

from components.run_report.mistakes import ExplainedMistake, grouped
from preprocessing.labels import SENTIMENT, Labels
from serving.explain import Part


def mistake(text, effects, label=0, predicted=1):
    """A mistake; the words of the text have these effects, and the others none."""
    parts = []
    for word in text.split():
        parts += [Part(word, effects.get(word, 0.0)), Part(" ")]
    return ExplainedMistake(text, label, predicted, 0.9, parts)


def found(mistakes, labels=SENTIMENT):
    return [
        (group.label, group.predicted, group.common, [text_of(each) for each in group.mistakes])
        for group in grouped(mistakes, labels)
    ]


def text_of(mistake):
    return "".join(part.text for part in mistake.parts).strip()


LONG = "it was a thing that we had in the house"


def test_mistakes_with_a_strong_word_in_common_are_a_group_and_short_ones_too():
    mistakes = [
        mistake(f"{LONG} Great!", {"Great!": 2.0, "the": 0.5}),
        mistake("no great", {"great": 1.0}),
        mistake(f"{LONG} and it broke", {"broke": 1.0}),
        mistake("oh well", {"well": 1.0}, label=1, predicted=0),
        mistake("so so", {"so": -1.0}, label=1, predicted=0),
    ]
    assert found(mistakes) == [
        ("negative", "positive", "the word “great”", ["no great", f"{LONG} Great!"]),
        ("positive", "negative", "at most 5 words", ["so so", "oh well"]),
        ("negative", "positive", "", [f"{LONG} and it broke"]),
    ]


def test_a_word_of_every_language_is_no_reason():
    """`the` is strong in two reviews and present in all of them."""
    mistakes = [mistake(f"{LONG} {n}", {"the": 1.0} if n < 2 else {}) for n in range(6)]
    [(*_, common, texts)] = found(mistakes)
    assert (common, len(texts)) == ("", 6)


def test_of_two_classes_the_words_for_the_first_one_have_negative_effects():
    words = {"poor": -2.0, "fine": 3.0}
    mistakes = [mistake(f"poor fine {LONG} {n}", words, label=1, predicted=0) for n in range(2)]
    assert [common for *_, common, _ in found(mistakes)] == ["the word “poor”"]
    topics = Labels(("refund", "card", "other"))
    assert [common for *_, common, _ in found(mistakes, topics)] == ["the word “fine”"]
