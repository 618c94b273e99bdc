"""The writing systems without blanks between words.

Only a dictionary finds the words of such a text, so each syllable is a word of its own. The n-grams
of words are then those of syllables. Zhang and LeCun, "Which Encoding is the Best for Text
Classification in Chinese, English, Japanese and Korean?" (2017), compare both. The laboratory
journal has measurements of our own.
"""

import re

_HAN = "[\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_RARE_HAN = "[\U00020000-\U0003ffff]"
_KANA = "[\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]"
# A consonant, a vowel that is written before it, and the vowels and tones that follow.
_THAI = "[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e2f-\u0e3a\u0e45\u0e47-\u0e4e]*"
_LAO = "[\u0ec0-\u0ec4]?[\u0e81-\u0eae\u0edc-\u0edf][\u0eaf-\u0ebd\u0ec8-\u0ece]*"
# A letter, the letters that are stacked below it, and its marks.
_KHMER = "[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d1\u17d3\u17dd])*"
_MYANMAR = "[\u1000-\u102a\u103f](?:\u1039[\u1000-\u102a]|[\u102b-\u1038\u103a-\u103e])*"
# Letters up to a mark that ends the syllable.
_TIBETAN = "[\u0f40-\u0fbc]+\u0f0b?"

SYLLABLE = "|".join([_HAN, _RARE_HAN, _KANA, _THAI, _LAO, _KHMER, _MYANMAR, _TIBETAN])
"""A syllable that is a word, as a regular expression of Python and of RE2."""


def separate_syllables(text: str) -> str:
    """Return the text with a space before and after each syllable that is a word."""
    if text.isascii():  # a search would take a tenth of the time of `serving.drift`
        return text
    return re.sub(SYLLABLE, r" \g<0> ", text)
