"""A review by one reviewer of one product: a title and a body of about a given length."""

from sample_data import phrases
from sample_data.dice import Dice
from sample_data.products import Aspect, Kind
from sample_data.slips import Typist
from sample_data.speaker import Speaker

MAX_WORDS = 300
SHORT = 24
"""Minimum number of words of a full review. A shorter one is a note: a few plain sentences."""
ROOM_FOR_DOUBT = 32

NEGATED = 0.5
OWN_ADJECTIVE = 0.15
REMARKS = 0.25
PLAIN = 0.4
NEUTRAL_NOTES = 0.3
TRIES = 12
OPENING_REMARK = 0.4
VERDICTS = 0.85
IRONY = 0.025
UNDECIDED = 0.01
# (fraction of reviewers, fraction of their opinions that contradict their verdict)
DISSENT = ((0.65, 0.0), (0.27, 0.1), (0.08, 0.3))
CLAUSES = ((0.3, "adjective"), (0.2, "feeling"), (0.2, "aspect"), (0.3, "experience"))
TITLES = ((0.38, "verdict"), (0.37, "aspect"), (0.25, "neutral"))


def _words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Reviewer:
    """The writer of one review, without repetitions and contradictions within the review.

    Args:
      dice: the source of random choices.
      kind: the kind of product.
      positive: whether the verdict is favourable.
      words: the intended number of words of the title and the body together.
    """

    def __init__(self, dice: Dice, kind: Kind, positive: bool, words: int) -> None:
        self.dice = dice
        self.kind = kind
        self.positive = positive
        self.words = words
        self.typist = Typist(dice)
        self.speaker = Speaker(dice)
        self.ironic = dice.chance(IRONY)
        self.undecided = dice.chance(UNDECIDED)
        self.dissent = self._draw_dissent()
        self.time = dice.pick(phrases.TIME)
        self.price = dice.pick(phrases.PRICE)
        self.used: set[str] = set()
        self.stance: dict[str, bool] = {}

    def _draw_dissent(self) -> float:
        if self.undecided:
            return 0.5
        return 0.0 if self.words < ROOM_FOR_DOUBT else self.dice.weighted(DISSENT)

    def write(self) -> tuple[str, str]:
        """Return a title and a body, which have about `words` words together, at most MAX_WORDS."""
        title, body = self._note() if self.words < SHORT else self._essay()
        return self.typist.title(_capital(title)), body

    def _note(self) -> tuple[str, str]:
        """Return plain sentences, one of them as the title."""
        title = self._short_title(self.words // 2)
        room = max(1, self.words - _words(title))
        body: list[str] = []
        while room > 0:
            body.append(self._say(room))
            room -= _words(body[-1])
        ends = [*(self.typist.end() for _ in body[1:]), self.dice.pick(("", ".", ".", "!"))]
        capital = _capital if self.dice.chance(0.7) else str
        return title, " ".join(
            capital(self.typist.type(text)) + end for text, end in zip(body, ends, strict=True)
        )

    def _short_title(self, limit: int) -> str:
        if not self.dice.chance(NEUTRAL_NOTES):
            return self._say(limit)
        if limit > 3:
            return self._fill(self._fresh(phrases.TITLE_NEUTRAL))
        return self.speaker.thing

    def _say(self, limit: int) -> str:
        """Return a plain sentence of at most `limit` words, or the shortest of several."""
        tried = []
        for _ in range(TRIES):
            tried.append(self.speaker.say(self.positive))
            if _words(tried[-1]) <= limit:
                return tried[-1]
        return min(tried, key=_words)

    def _essay(self) -> tuple[str, str]:
        title = self._title()
        verdict = [self._sentence(self._verdict())] if self.dice.chance(VERDICTS) else []
        body: list[str] = []
        budget = min(self.words, MAX_WORDS) - _words(title, *verdict)
        misses = 0
        while budget > 3 and misses < 5:
            sentence = self._next_sentence(budget, first=not body)
            if sentence:
                body.append(sentence)
                budget -= _words(sentence)
            else:
                misses += 1
        body += verdict or ([] if body else [self._sentence(self._clause(self.positive))])
        return title, " ".join(body)

    def _next_sentence(self, budget: int, first: bool) -> str:
        """Return a sentence of at most `budget` words, or "" if the drawn sentence is longer."""
        used, stance = set(self.used), dict(self.stance)
        thought = self._thought(first)
        sentence = self._sentence(thought) if first else self._sentence(self._opener() + thought)
        if _words(sentence) <= budget:
            return sentence
        self.used, self.stance = used, stance
        return ""

    def _opener(self) -> str:
        return f"{self.dice.pick(phrases.OPENERS)} " if self.dice.chance(0.12) else ""

    def _thought(self, first: bool) -> str:
        if self.dice.chance(self._small_talk(first)):
            return self._remark()
        if self.ironic and self.dice.chance(0.6):
            return self._fill(self._fresh(self._side(phrases.IRONY_POS, phrases.IRONY_NEG)))
        return self._opinion()

    def _small_talk(self, first: bool) -> float:
        """Return the probability of a remark, which is low in short reviews."""
        if self.words < ROOM_FOR_DOUBT and not self.stance:
            return OPENING_REMARK if first and self.words > 20 else 0.0
        return OPENING_REMARK if first else REMARKS

    def _remark(self) -> str:
        facts = tuple(fact for fact in self.kind.facts if fact not in self.used)
        bank = facts if facts and self.dice.chance(0.3) else phrases.SMALL_TALK
        return self._fill(self._fresh(bank))

    def _opinion(self) -> str:
        dissents = self.dice.chance(self.dissent)
        if not dissents and self.dice.chance(PLAIN):
            return self.speaker.say(self.positive)
        first = self._clause(self.positive != dissents)
        if self.dice.chance(0.45):
            return first
        if dissents and self.dice.chance(0.6):
            contrast = self.dice.pick(phrases.CONTRAST)
            return contrast.format(other=first, own=self._clause(self.positive))
        second = self._clause(self.positive != dissents)
        return self.dice.pick(phrases.AGREEMENT).format(a=first, b=second)

    def _clause(self, favourable: bool) -> str:
        aspect = self._aspect(favourable)
        sort = self.dice.weighted(CLAUSES)
        if aspect is not None and sort == "aspect":
            clauses = aspect.pros if favourable else aspect.cons
            if not self.used.issuperset(clauses):
                return self._fresh(clauses)
            sort = "feeling"
        if aspect is None or sort == "experience":
            bank = phrases.EXPERIENCE_POS if favourable else phrases.EXPERIENCE_NEG
            return self._fill(self._fresh(bank))
        negated = self.dice.chance(NEGATED)
        if sort == "feeling":
            return self._fill(self._fresh(phrases.FEELING[favourable, negated]), aspect)
        bank = phrases.NEGATED_ADJECTIVE if negated else phrases.PLAIN_ADJECTIVE
        adjective = self._adjective(aspect, good=favourable != negated)
        return self._fill(self._fresh(bank), aspect, adjective)

    def _aspect(self, favourable: bool) -> Aspect | None:
        """Return an aspect without an opposite opinion in this review; None if there is none."""
        aspects, stance = self.kind.aspects, self.stance
        agreeing = [a for a in aspects if stance.get(a.noun, favourable) == favourable]
        if not agreeing:
            return None
        aspect = self.dice.pick([a for a in agreeing if a.noun not in stance] or agreeing)
        self.stance[aspect.noun] = favourable
        return aspect

    def _adjective(self, aspect: Aspect, good: bool) -> str:
        if self.dice.chance(OWN_ADJECTIVE):
            return self.dice.pick(aspect.praise if good else aspect.complaint)
        return self.dice.pick(phrases.GOOD if good else phrases.BAD)

    def _verdict(self) -> str:
        if self.undecided or (self.words > ROOM_FOR_DOUBT and self.dice.chance(0.06)):
            return self._fresh(phrases.VERDICT_WEAK)
        return self._fill(self._fresh(self._side(phrases.VERDICT_POS, phrases.VERDICT_NEG)))

    def _title(self) -> str:
        sort = "neutral" if self.undecided else self.dice.weighted(TITLES)
        if sort == "neutral":
            return self._fill(self._fresh(phrases.TITLE_NEUTRAL))
        if sort == "verdict":
            return self._fill(self._fresh(self._side(phrases.TITLE_POS, phrases.TITLE_NEG)))
        negated = self.dice.chance(NEGATED)
        aspect = self.dice.pick(self.kind.aspects)
        self.stance[aspect.noun] = self.positive
        template = self.dice.pick(phrases.TITLE_NEGATED if negated else phrases.TITLE_PLAIN)
        good = self.positive != negated
        if "{bare}" not in template and "{noun}" not in template:
            # Praise for the whole product needs an adjective that is not specific to an aspect.
            adjective = self.dice.pick(phrases.GOOD if good else phrases.BAD)
            return self._fill(template, aspect, adjective)
        return self._fill(template, aspect, self._adjective(aspect, good))

    def _sentence(self, text: str) -> str:
        parts = [_capital(part) for part in self.typist.type(text).split(". ")]
        sentence = ". ".join(parts) + self.typist.end()
        return sentence.lower() if self.typist.lower_case else sentence

    def _side(self, pos: tuple[str, ...], neg: tuple[str, ...]) -> tuple[str, ...]:
        return pos if self.positive else neg

    def _fresh(self, bank: tuple[str, ...]) -> str:
        """Return a phrase that fits the product, a new one as long as there are any."""
        fitting = [p for p in bank if self.kind.wears_out or not p.startswith("* ")]
        phrase = self.dice.pick([p for p in fitting if p not in self.used] or fitting)
        self.used.add(phrase)
        return phrase.removeprefix("* ")

    def _fill(self, template: str, aspect: Aspect | None = None, adjective: str = "") -> str:
        dice, plural = self.dice, self.kind.plural
        aspect = aspect or dice.pick(self.kind.aspects)
        return template.format(
            name=self.kind.name,
            a_name=self.kind.article,
            unit=self.kind.unit,
            it="they" if plural else "it",
            them="them" if plural else "it",
            this="these" if plural else "this",
            do="do" if plural else "does",
            dont="don't" if plural else "doesn't",
            was="were" if plural else "was",
            has="have" if plural else "has",
            isnt="aren't" if plural else "isn't",
            s="" if plural else "s",
            noun=aspect.noun,
            bare=aspect.noun.removeprefix("the "),
            nis="are" if aspect.plural else "is",
            nwas="were" if aspect.plural else "was",
            nisnt="aren't" if aspect.plural else "isn't",
            adj=adjective,
            person=dice.pick(phrases.PERSON),
            time=self.time,
            price=self.price,
            delivery=dice.pick(phrases.DELIVERY),
        )
