"""The English forms of the verb phrases in the lexicon."""

from sample_data.banks import LEXICON


def _irregular(name: str) -> dict[str, str]:
    return dict(entry.split("=") for entry in LEXICON[name])


_PASTS = _irregular("pasts")
_PERFECTS = {**_PASTS, **_irregular("perfects")}
_DOUBLING = ("get", "quit", "run", "cut", "fit", "split", "let")
_ADVERBS = ("really", "absolutely", "highly", "thoroughly")


def _on_verb(phrase: str) -> tuple[str, str, str]:
    """Return the text before the verb, the verb, and the text after it."""
    adverb, _, rest = phrase.partition(" ")
    before = f"{adverb} " if adverb in _ADVERBS else ""
    verb, space, after = (rest if before else phrase).partition(" ")
    return before, verb, space + after


def third(phrase: str) -> str:
    """Return the form of `fall apart` in "it falls apart"."""
    before, verb, after = _on_verb(phrase)
    if verb == "do" or verb.endswith(("s", "sh", "ch", "x")):
        verb += "es"
    elif verb.endswith("y") and verb[-2] not in "aeo":
        verb = verb[:-1] + "ies"
    else:
        verb += "s"
    return before + verb + after


def _regular_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("y") and verb[-2] not in "aeo" else verb + "ed"


def past(phrase: str) -> str:
    """Return the form of `fall apart` in "it fell apart"."""
    before, verb, after = _on_verb(phrase)
    return before + _PASTS.get(verb, _regular_past(verb)) + after


def perfect(phrase: str) -> str:
    """Return the form of `fall apart` in "it has fallen apart"."""
    before, verb, after = _on_verb(phrase)
    return before + _PERFECTS.get(verb, _regular_past(verb)) + after


def progressive(phrase: str) -> str:
    """Return the form of `fall apart` in "it keeps falling apart"."""
    before, verb, after = _on_verb(phrase)
    if verb == "die":
        verb = "dy"
    elif verb in _DOUBLING or _PASTS.get(verb) == f"{verb}{verb[-1]}ed":
        verb += verb[-1]
    elif verb.endswith("e"):
        verb = verb[:-1]
    return before + verb + "ing" + after
