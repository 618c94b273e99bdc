"""Ratings as people and shops write them are read as numbers of stars, by sentiment and stars."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen.stars import rating
from preprocessing.reading.labels import label_name, scale_label
from preprocessing.reading.ratings import find_rating, number_name, stars_of_five

FORMS = (
    # The alternative text of the stars in the shops of Amazon, and other forms
    *("{point} out of 5 stars", "{n} out of 5", "{n} of 5 stars", "{n} stars", "{n} STARS"),
    *("{comma} von 5 Sternen", "{n} von 5", "{n} Sterne", "{n}/5", "{comma}/5", "{n} / 5"),
    *("{comma} sur 5 étoiles", "{n} étoiles", "{comma} de 5 estrellas", "{comma} su 5 stelle"),
    *(
        "{comma} de 5 estrelas",
        "{comma} van 5 sterren",
        "{comma} z 5 gwiazdek",
        "{n} z 5 hvězdiček",
    ),
    *("{comma} av 5 stjärnor", "{comma} ud af 5 stjerner", "{comma} из 5 звезд", "{n} из 5 звёзд"),
    *("5つ星のうち{point}", "{n}つ星", "5 yıldız üzerinden {comma}", "{point} من 5 نجوم"),
    *("5 में से {point} सितारे", "{point} 颗星，最多 5 颗星", "5점 만점에 {n}점", "별 5개 중 {n}개"),
    *("{n} Sterne von 5", "{n} étoiles sur 5", "{n}-star", "★ {point}", "★{n}/5", "{n}/5 stars"),
    *("Rated {point} out of 5", "Rating: {n}/5", "Bewertung: {n} Sterne", "Оценка {n} из 5"),
    # The alternative text of the ratings of Tripadvisor
    *("{n} of 5 bubbles", "{point} of 5 bubbles"),
    *(
        "5 में से {point} स्टार",
        "별점 {n}/5",
        "{n} από 5 αστέρια",
        "{n} מתוך 5 כוכבים",
        "{arabic} من ٥ نجوم",
    ),
    *("{n} dari 5 bintang", "{n} trên 5 sao", "{n} din 5 stele", "{n} з 5 зірок", "{n} จาก 5 ดาว"),
    *("{glyphs}", "{n} ★", "{n}/5 ★", "{n} ⭐"),
)


def written(form, stars):
    """Return a rating of 1 to 5 stars in a form."""
    return form.format(
        n=stars,
        point=f"{stars}.0",
        comma=f"{stars},0",
        arabic="٠١٢٣٤٥"[stars],
        glyphs="★" * stars + "☆" * (5 - stars),
    )


@given(st.sampled_from(FORMS), st.integers(1, 5))
def test_a_number_of_stars_has_the_same_name_in_every_form(form, stars):
    text = written(form, stars)
    assert scale_label(f" {text} ") == label_name(stars) == scale_label(text)
    assert rating(text) == stars


def test_the_name_of_a_class_is_the_text_of_a_rating():
    texts = ["4", "4/5", "4 von 5 Sternen", "★★★★☆", "5つ星のうち4.0"]
    assert [label_name(text) for text in texts] == texts
    assert {scale_label(text) for text in texts} == {"4"}


@given(st.sampled_from(["{} out of 5 stars", "{} von 5 Sternen", "{}/5", "{} étoiles"]))
def test_half_a_star_stays(form):
    for number in ("3.5", "3,5"):
        assert stars_of_five(form.format(number)) == "3.5"
    assert stars_of_five("★★★½") == stars_of_five("★★★½☆") == "3.5"


@pytest.mark.parametrize("text", ["8/10", "8 von 10", "★★★★★★★☆☆☆"])
def test_a_scale_other_than_five_is_read_by_the_task_of_stars_alone(text):
    found = find_rating(text)
    assert found.value in (7, 8) and found.most == 10
    assert stars_of_five(text) is None and label_name(text) == text == scale_label(text)
    assert rating(text) == found.value


@pytest.mark.parametrize(
    "text",
    [
        *("", "stars", "five stars", "4", "4.0", "-4/5", "6/5", "4/5/2020", "4 out of", "/5"),
        *("4 of the 5 stars", "1/2", "4 von", "☆☆☆☆☆", "★ nice", "nice ★★★", "x" * 100 + "4/5"),
        *(
            "4 stars, but slow",
            "½",
            "½☆☆☆☆",
            "note 4",
            "rating: good",
            "4 de mayo",
            "5 items",
            "4,0000/5",
        ),
    ],
)
def test_another_text_is_no_rating_of_five_stars(text):
    assert stars_of_five(text) is None


@given(st.decimals(0, 10**6, places=3))
def test_the_name_of_a_number_is_its_shortest_spelling(number):
    name = number_name(number)
    assert Decimal(name) == number
    assert "." not in name or not name.endswith(("0", "."))


def test_a_comma_before_three_zeros_may_separate_thousands():
    names = ["1,000", "100,000", "-2,000", "1,0", "1,00", "1.000", "3,"]
    assert [*map(label_name, names)] == ["1,000", "100,000", "-2,000", "1", "1", "1", "3"]
