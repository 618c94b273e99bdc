"""The page of a report in Chromium: small, dark, on paper, and with hostile text."""

import base64
import re

import pytest

from components.evaluator.files import WrongAnswer
from components.run_report.content import collect
from components.run_report.mistakes import ExplainedMistake
from components.run_report.page import render
from serving.explain import Part
from tests.browser import open_browser, resize
from tests.components.run_report.artifacts import HOSTILE, of_topics, with_every_part, write_run

ARABIC = "\u0645\u0631\u062d\u0628\u0627"
# The machine of the second stack always has Chromium.
pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return collect(write_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def whole(content, tmp_path_factory):
    """A page with every part, and long texts."""
    file = tmp_path_factory.mktemp("whole") / "report.html"
    file.write_text(render(with_every_part(content, size=300)))
    return file


@pytest.fixture(scope="module")
def chromium():
    with open_browser() as found:
        yield found


@pytest.fixture
def browser(chromium):
    """Chromium on a large screen, in the light theme."""
    resize(chromium)
    styles(chromium, "", "light")
    chromium.get_log("browser")
    return chromium


def styles(browser, media, theme):
    """Emulate a medium and a theme; return the channels of the colours of the body."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    body = browser.find_element("tag name", "body")
    colours = map(body.value_of_css_property, ("background-color", "color"))
    return [[int(part) for part in re.findall(r"\d+", colour)[:3]] for colour in colours]


def test_light_and_dark_themes_are_readable(browser, whole):
    browser.get(whole.as_uri())
    background, colour = styles(browser, "screen", "light")
    assert background == [255, 255, 255]
    assert max(colour) < 64
    background, colour = styles(browser, "screen", "dark")
    assert max(background) < 64
    assert min(colour) > 192


def test_on_paper_all_of_it_is_visible_in_the_light_theme(browser, whole):
    # A sheet of A4 without the margins of Chromium, in CSS pixels.
    resize(browser, 718)
    browser.get(whole.as_uri())
    unfold(browser)
    assert styles(browser, "print", "dark") == styles(browser, "print", "light")
    assert styles(browser, "print", "dark")[0] == [255, 255, 255]
    hidden = browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter("
        "  (one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth"
        "    && getComputedStyle(one).overflowX !== 'visible')"
        ".map((one) => one.outerHTML.slice(0, 200))"
    )
    assert hidden == []
    assert content_fits(browser)
    settings = browser.find_element("css selector", "#settings details table")
    assert "training.model" in settings.text


def test_a_report_is_printed_on_four_pages_without_what_is_folded(browser, content, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render(with_every_part(content)))
    browser.get(file.as_uri())
    # A4 in inches.
    sheet = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
    printed = browser.execute_cdp_cmd("Page.printToPDF", sheet)
    pages = re.findall(rb"/Type ?/Page[^s]", base64.b64decode(printed["data"]))
    assert 1 <= len(pages) <= 4


def test_the_page_on_a_phone(browser, whole):
    resize(browser, 390)
    browser.get(whole.as_uri())
    assert content_fits(browser), "the page scrolls sideways"
    height = browser.execute_script("return document.documentElement.scrollHeight")
    unfold(browser)
    assert content_fits(browser), "the page scrolls sideways"
    assert browser.execute_script("return document.documentElement.scrollHeight") > height
    assert len(browser.find_elements("css selector", "svg[role=img][aria-label]")) == 9


def test_long_names_of_classes_fit_on_a_phone(browser, content, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render(of_topics(content, ["a" * 80, "<b>" * 30, "last", "without_texts"])))
    resize(browser, 320)
    browser.get(file.as_uri())
    assert content_fits(browser), "the page scrolls sideways"
    unfold(browser)
    assert content_fits(browser), "the page scrolls sideways"


def test_a_name_or_a_text_from_right_to_left_does_not_reorder_the_words_around_it(
    browser, content, tmp_path
):
    file = tmp_path / "report.html"
    shown = of_topics(content, [ARABIC, "\u202eevil", "last"])
    texts = {(0, 1): [WrongAnswer(f"{ARABIC}, 3", 0, 1, 0.9)]}
    mistake = ExplainedMistake(ARABIC, 0, 1, 0.9, [Part(ARABIC, 2.0)])
    file.write_text(render(shown._replace(confusion_texts=texts, mistakes=[mistake])))
    browser.get(file.as_uri())
    unfold(browser)
    # Each text node that a browser orders together with a name or a text of a review.
    script = (
        "const parts = 'h3, blockquote, .review, #classes td, #confusion th';"
        "return [...document.querySelectorAll(parts)]"
        ".flatMap((one) => [...one.childNodes])"
        ".filter((one) => one.nodeType === 3 && /[\\u0590-\\u06ff\\u202e]/.test(one.textContent))"
        ".map((one) => one.parentNode.outerHTML)"
    )
    assert browser.execute_script(script) == []
    # The numbers after a name are at its right.
    left, right = browser.execute_script(
        "const heading = [...document.querySelectorAll('h3')].find("
        "  (one) => one.textContent.includes(' answered as '));"
        "const [, name] = heading.querySelectorAll('bdi');"
        "const range = document.createRange();"
        "range.selectNodeContents(heading.lastChild);"
        "return [name.getBoundingClientRect().right, range.getBoundingClientRect().left]"
    )
    assert left <= right + 1


def test_each_picture_has_a_sentence_and_each_folded_part_opens_by_keyboard(browser, whole):
    browser.get(whole.as_uri())
    captions = [
        each.text for each in browser.find_elements("css selector", "#pictures ~ * figcaption")
    ]
    assert len(captions) == 4
    assert all(len(caption.splitlines()) == 2 for caption in captions)
    summary = browser.find_element("css selector", "#settings > summary")
    summary.send_keys("\ue007")  # Enter
    assert browser.find_element("css selector", "#settings table").is_displayed()


def test_areas_that_scroll_are_reached_by_keyboard(browser, whole):
    """WCAG 2.1.1, with a name for a screen reader."""
    resize(browser, 320)
    browser.get(whole.as_uri())
    unfold(browser)
    scroll = (
        "return [...document.querySelectorAll('*')].filter("
        "  (one) => ['auto', 'scroll'].includes(getComputedStyle(one).overflowX))"
    )
    areas = browser.execute_script(scroll)
    assert len(areas) == 16
    assert any(one.get_property("scrollWidth") > one.get_property("clientWidth") for one in areas)
    assert {(one.get_property("tabIndex"), one.aria_role) for one in areas} == {(0, "region")}
    names = [one.accessible_name for one in areas]
    assert all(names) and len(set(names)) == len(names)


def unfold(browser):
    browser.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true)")


def content_fits(browser):
    widths = "return [document.documentElement.scrollWidth, window.innerWidth]"
    content, window = browser.execute_script(widths)
    return content <= window


def test_hostile_text_is_inert_and_nothing_is_loaded(browser, content, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render(content))
    browser.get(file.as_uri())
    assert browser.title == "amazon_reviews 2026-11-22T10:00:00.000001"
    assert browser.get_log("browser") == []
    requests = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert requests == 0
    unfold(browser)
    assert HOSTILE in browser.find_element("css selector", "main").text
