"""The words that contribute to a prediction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.explain import logit, parts, variants


@given(st.text())
def test_the_parts_are_the_review(text):
    found = parts(text, [0.5] * len(variants(text)))
    assert "".join(part.text for part in found) == text


def test_each_word_is_left_out_once():
    assert variants(" not  bad") == [b" not  bad", b"   bad", b" not  "]
    assert variants("a b c", words=1) == [b"a b c", b" b c"]
    _, *without = (variant.decode() for variant in variants("iPhoneは良い"))
    assert without == ["は良い", "iPhone良い", "iPhoneはい", "iPhoneは良"]


def test_a_word_that_makes_it_positive_has_a_positive_effect():
    found = parts("a good one", [0.9, 0.9, 0.5, 0.95])
    effects = {part.text: part.effect for part in found}
    assert effects["good"] == pytest.approx(2.1972, abs=1e-4)
    assert effects["a"] == 0
    assert effects["one"] < 0
    assert effects[" "] is None


def test_certain_predictions_have_finite_effects():
    assert abs(parts("good", [1.0, 0.0])[0].effect) < 40


def test_a_logit_is_exact_up_to_the_precision_of_a_float32():
    assert logit(0.001) == pytest.approx(-6.906755)
    assert logit(1 - 1e-6) == pytest.approx(13.81551)
    assert logit(0.0) == logit(1e-9) == pytest.approx(-16.1181)
    assert logit(1.0) == pytest.approx(-logit(0.0))
