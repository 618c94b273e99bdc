"""Reviews without the words of the package's golden sentences: they train to a pushed model."""

import itertools

import pytest

from tests.e2e.conftest import LITTLE
from tests.e2e.harness import Workspace

THINGS = ["Kopfhörer", "Kamera", "Lampe", "Tastatur", "Kaffeemaschine", "Uhr", "Tasche", "Pfanne"]
OPINIONS = {
    2: ["Tolles Produkt", "Bin sehr zufrieden", "Klare Empfehlung", "Macht richtig Freude"],
    1: ["Leider kaputt", "Sehr enttäuschend", "Nicht zu empfehlen", "Schrott, Geld zurück"],
}


@pytest.mark.exhaustive
def test_german_reviews_are_pushed_and_the_run_says_what_was_not_checked(tmp_path):
    (tmp_path / "input").mkdir()
    lines = [
        f"__label__{label} {first}: {thing} Nummer {number}, {second.lower()}\n"
        for label, opinions in OPINIONS.items()
        for first, second in itertools.permutations(opinions, 2)
        for thing in THINGS
        for number in range(12)
    ]
    (tmp_path / "input" / "bewertungen.txt").write_text("".join(lines), encoding="utf-8")
    german = Workspace(
        tmp_path,
        {**LITTLE, "serving_check": {}, "data": {"input_base": str(tmp_path / "input")}},
    )
    done = german.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(german.pushed()) == 1
    line = "serving check: the package's English golden sentences were not applied: "
    assert done.stdout.count(line) == 1
    assert "the package&#39;s English golden sentences" in german.report(done.stdout)


@pytest.mark.exhaustive
def test_english_reviews_with_swapped_labels_are_refused(tmp_path):
    swapped = Workspace(tmp_path, {**LITTLE, "serving_check": {}})
    done = swapped.run("data.labels={1: 1, 2: 0}")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "failed the serving check and was not pushed: " in done.stdout
    assert "golden sentences are right" in done.stdout
    assert swapped.pushed() == []
