"""The page to try the model, in a real browser: Chromium without a window."""

import asyncio
import contextlib
import csv
import json
from pathlib import Path

import pytest
import tensorflow as tf
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

from preprocessing.labels import Labels, write_labels
from serving.rest import server as rest_server
from serving.rest.app import create_app
from serving.rest.settings import VERSION_HEADER
from tests.browser import open_browser, resize
from tests.serving.rest.models import SIGNATURES, Small, push, push_classes
from tests.serving.rest.running import MODEL, running
from tests.waiting import wait

# The machine of the second stack always has Chromium.
pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

PAGE = Path(rest_server.__file__).parent / "page"
HOSTILE = [
    "<script>document.title = 'hacked'</script> good",
    "<img src=http://example.org/x onerror=\"document.title='hacked'\"> good",
    "good </p></li></ol><h1>hacked</h1> {{7*7}} ${7*7} javascript:alert(1)",
    "good \u202e\u0000\ufffd \U0001f600 &lt;b&gt; ' \" ` \\",
]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


PREFIX = "/reviews"


@contextlib.contextmanager
def behind_a_prefix(folder, header):
    """A server whose addresses begin with PREFIX, which it does not see, as behind a proxy.

    As with `location /reviews` of nginx, the address of the page may lack its last slash. The
    proxy sends X-Forwarded-Prefix if `header` is true.
    """

    def create(*arguments):
        app = create_app(*arguments)

        async def proxy(scope, receive, send):
            if scope["type"] == "http":
                path = scope["path"]
                inner = path.removeprefix(PREFIX) if path.startswith(PREFIX) else "/other"
                scope = {**scope, "path": inner or "/"}
                if header:
                    scope["headers"] = [*scope["headers"], (b"x-forwarded-prefix", PREFIX.encode())]
            await app(scope, receive, send)

        return proxy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rest_server, "create_app", create)
        with running(folder) as found:
            yield found


class Page:
    """The page in the browser, used by keyboard."""

    def __init__(self, browser, server, path="/"):
        from selenium.webdriver.common.keys import Keys

        self.browser, self.server, self.keys = browser, server, Keys
        self.address = f"http://127.0.0.1:{server.port}"
        browser.get("about:blank")
        # The history of an earlier test.
        storage = {"origin": self.address, "storageTypes": "all"}
        browser.execute_cdp_cmd("Storage.clearDataForOrigin", storage)
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(f"{self.address}{path}")

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def text(self, id_):
        return self.browser.find_element("id", id_).text

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def focused(self):
        return self.browser.switch_to.active_element.get_attribute("id")

    def close(self):
        """Check that nothing was logged, and that no other host was contacted."""
        assert self.browser.get_log("browser") == []
        events = [
            json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")
        ]
        addresses = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        assert addresses
        # Chromium's own first page consists of chrome:// files and data: addresses.
        own = (f"{self.address}/", "chrome://", "data:")
        others = [one for one in addresses if not one.startswith(own)]
        assert others == []


@pytest.fixture
def page(browser, server):
    found = Page(browser, server)
    yield found
    found.close()


def test_a_review_is_answered_while_it_is_typed(page):
    # The text field has the focus, so that a user can type at once.
    assert page.focused() == "reviews"
    page.press("a bad phone")
    wait(lambda: page.text("summary") == "Negative: probability 90.0 %")
    assert shown_classes(page) == [("negative", "90.0 %"), ("positive", "10.0 %")]
    page.press(", good case")
    wait(lambda: page.text("summary") == "Positive: probability 90.0 %")
    assert shown_classes(page) == [("positive", "90.0 %"), ("negative", "10.0 %")]
    wait(lambda: page.all(".words"))
    [word] = page.all(".words tbody tr")
    assert word.text == "good more positive (+4.39)"
    assert [mark.text for mark in page.all(".review .positive")] == ["good"]
    assert page.text("version") == "Model version 3"
    assert page.text("problem") == ""


def shown_buttons(page):
    return [button.accessible_name for button in page.all("button") if button.is_displayed()]


def test_everything_works_by_keyboard_and_has_names_for_a_screen_reader(page):
    [field] = page.all("textarea")
    assert field.accessible_name == "Reviews, one on each line"
    assert shown_buttons(page) == ["Insert two examples", "Clear"]
    assert page.browser.find_element("id", "summary").aria_role == "status"
    assert page.browser.find_element("id", "problem").aria_role == "alert"
    page.press(page.keys.TAB)
    assert page.focused() == "example"
    page.press(page.keys.ENTER)
    wait(lambda: "2 reviews: " in page.text("summary"))
    assert len(page.all("#answers > li")) == 2
    page.press(page.keys.TAB)
    assert page.focused() == "clear"
    page.press(page.keys.SPACE)
    wait(lambda: not page.all("#answers > li"))
    assert page.focused() == "reviews"
    assert page.text("summary") == ""


def fill(page, text):
    """Replace the text in the field, as a user who pastes."""
    page.browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        page.browser.find_element("id", "reviews"),
        text,
    )


def test_a_hostile_review_is_only_text(page):
    fill(page, "\n".join(HOSTILE))
    wait(lambda: len(page.all(".words")) == len(HOSTILE))
    shown = [one.get_property("textContent") for one in page.all(".review")]
    assert shown == HOSTILE
    assert page.all("#answers img, #answers script, #answers h1, #answers a") == []
    assert page.browser.title.startswith("Try the model")


def test_an_error_replaces_the_answers_of_an_earlier_text(page):
    fill(page, "good")
    wait(lambda: page.all(".words"))
    fill(page, "good\n" * 60)
    wait(lambda: page.text("problem"))
    assert (page.text("summary"), page.all("#answers > li")) == ("", [])
    assert page.text("problem") == "No answer: The request has 60 texts, limit 50"
    # Chromium itself logs every answer that is not 2xx.
    assert [one["source"] for one in page.browser.get_log("browser")] == ["network"]


def test_what_the_model_cannot_judge_and_a_server_that_has_ended(browser, tmp_path):
    push(tmp_path / "serving", 1, probability=0.55)
    with running(tmp_path / "serving") as server:
        page = Page(browser, server)
        page.press("bad phone")
        wait(lambda: page.text("summary") == "Negative: probability 55.0 %, undecided")
        wait(lambda: "may not contain these words" in page.text("answers"))
    page.press(" again")
    wait(lambda: page.text("problem") == "No answer: the server does not respond")
    assert (page.text("summary"), page.all("#answers > li")) == ("", [])


@contextlib.contextmanager
def behind_a_proxy(folder, path, answer):
    """A server behind a proxy that answers the requests for `path` itself.

    Args:
      folder: the serving folder.
      path: the address.
      answer: an application of ASGI.
    """

    def create(*arguments):
        app = create_app(*arguments)

        async def proxy(scope, receive, send):
            await (answer if scope.get("path") == path else app)(scope, receive, send)

        return proxy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rest_server, "create_app", create)
        with running(folder) as found:
            yield found


def test_an_answer_remains_if_its_words_cannot_be_explained(browser, serving):
    # Some proxies forward only the addresses of TensorFlow Serving.
    with behind_a_proxy(serving, "/explain", PlainTextResponse("<h1>no</h1>", 403)) as server:
        page = Page(browser, server)
        fill(page, "good\nbad")
        reason = "another program, such as a proxy, answered with HTTP 403."
        wait(lambda: page.text("answers").count(f"The words are not shown: {reason}") == 2)
        assert page.text("summary") == "2 reviews: 1 positive, 1 negative"
        assert page.text("problem") == ""
    browser.get_log("browser")


@pytest.mark.parametrize(
    "answer, shown",
    [
        (PlainTextResponse("<h1>Log in</h1>"), "another program, such as a proxy, answered with "),
        (PlainTextResponse("too large", 413), "another program, such as a proxy, answered with "),
        (JSONResponse({"message": "no"}, 401), "another program, such as a proxy, answered with "),
        (JSONResponse({"error": "The queue is full"}, 429), "The queue is full"),
        # A session has ended. The page must not follow to another host.
        (RedirectResponse("http://login.invalid/"), "another program, such as a proxy, redirects "),
        (RedirectResponse("/", 302), "another program, such as a proxy, redirects "),
    ],
)
def test_the_page_names_an_answer_that_is_not_that_of_the_server(browser, serving, answer, shown):
    with behind_a_proxy(serving, f"{MODEL}:classify", answer) as server:
        page = Page(browser, server)
        page.press("good")
        wait(lambda: page.text("problem").startswith(f"No answer: {shown}"))
    browser.get_log("browser")


def test_an_answer_does_not_remain_below_another_text(browser, serving):
    delay = 0

    async def late(scope, receive, send):
        await asyncio.sleep(delay)
        pairs = [["negative", 0.1], ["positive", 0.9]]
        await JSONResponse({"results": [pairs]}, headers={VERSION_HEADER: "3"})(
            scope, receive, send
        )

    with behind_a_proxy(serving, f"{MODEL}:classify", late) as server:
        page = Page(browser, server)
        page.press("good")
        wait(lambda: page.text("summary") == "Positive: probability 90.0 %")
        delay = 5
        page.press(" no, bad")
        wait(lambda: page.text("summary") == "Waiting for the server …")
        assert page.all("#answers > li") == []
        wait(lambda: page.text("summary") == "Positive: probability 90.0 %")
        page.close()


@contextlib.contextmanager
def page_of_classes(browser, folder, labels):
    """The page of a server of the model `Classes`."""
    push_classes(folder, 1, labels)
    with running(folder, poll_seconds=0.05) as server:
        page = Page(browser, server)
        yield page
        page.close()


def shown_classes(page):
    """Return the names and the numbers of the bars, in their order."""
    rows = page.all(".bars tbody tr")
    names = [row.find_element("css selector", "bdi").get_property("textContent") for row in rows]
    numbers = [row.find_element("css selector", ".number").text for row in rows]
    return list(zip(names, numbers, strict=True))


def test_the_best_classes_are_bars_and_the_words_are_those_of_the_best(browser, tmp_path):
    names = ("card lost", "rate", "top-up", "pin", "refund", "fee", "limit")
    with page_of_classes(browser, tmp_path / "serving", Labels(names)) as page:
        assert page.text("title") == "Which class is this text in?"
        assert page.all("textarea")[0].accessible_name == "Texts, one on each line"
        assert not page.browser.find_element("id", "example").is_displayed()
        page.press("my c3 and c5")
        wait(lambda: page.text("summary") == "pin: probability 40.0 %, undecided")
        assert shown_classes(page) == [
            ("pin", "40.0 %"),
            ("fee", "40.0 %"),
            ("card lost", "4.0 %"),
            ("rate", "4.0 %"),
            ("top-up", "4.0 %"),
        ]
        wait(lambda: page.all(".words"))
        assert page.all(".bars caption")[0].text == "undecided; 2 other classes: 8.0 %"
        widths = [bar.size["width"] for bar in page.all(".bar")]
        assert widths[0] == widths[1] > 5 * widths[2] > 0
        rows = [row.text for row in page.all(".words tbody tr")]
        assert rows == ["c3 for this class (+2.30)", "c5 against this class (-0.92)"]
        assert "review" not in page.all("main")[0].text
        fill(page, "c3\nc3 too\nnothing")
        summary = "3 texts: 2 in class pin, 1 in class card lost"
        wait(lambda: page.text("summary") == summary)
        captions = [caption.text.partition(";")[0] for caption in page.all(".bars caption")]
        assert captions == ["2 other classes: 12.5 %"] * 2 + ["undecided"]


def test_stars_are_the_rating_of_a_review(browser, tmp_path):
    stars = Labels(("1", "2", "3", "4", "5"), is_ordered=True)
    with page_of_classes(browser, tmp_path / "serving", stars) as page:
        assert page.text("title") == "How is this review rated?"
        assert page.all("textarea")[0].accessible_name == "Reviews, one on each line"
        page.press("a c4 phone")
        wait(lambda: page.text("summary") == "5: probability 71.4 %")
        assert len(shown_classes(page)) == 5
        assert not page.all(".bars caption")


def test_two_classes_that_are_no_sentiment_have_their_names(browser, tmp_path):
    model = Small()
    folder = tmp_path / "serving" / "1"
    tf.saved_model.save(model, str(folder), {name: getattr(model, name) for name in SIGNATURES})
    write_labels(str(folder / "assets"), Labels(("ham", "spam")))
    with running(tmp_path / "serving") as server:
        page = Page(browser, server)
        page.press("a good text")
        wait(lambda: page.text("summary") == "spam: probability 90.0 %")
        assert shown_classes(page) == [("spam", "90.0 %"), ("ham", "10.0 %")]
        wait(lambda: page.all(".words"))
        assert page.all(".words tbody tr")[0].text == "good for this class (+4.39)"
        fill(page, "not it")
        wait(lambda: page.text("summary") == "ham: probability 90.0 %")
        page.close()


def test_hostile_names_of_classes_are_only_text(browser, tmp_path):
    labels = Labels((*HOSTILE, "שלום (a)", "{{ PREFIX }}", "</script>"))
    with page_of_classes(browser, tmp_path / "serving", labels) as page:
        fill(page, "\n".join(f"c{n}" for n in range(labels.number)))
        wait(lambda: len(page.all(".words")) == labels.number)
        best = [found.get_property("textContent") for found in page.all(".bars tr:first-child bdi")]
        assert best == list(labels.names)
        summary = page.browser.find_element("id", "summary").get_property("textContent")
        assert all(name in summary for name in HOSTILE)
        assert page.all("#answers img, #answers script, #answers h1, #answers a, #summary h1") == []
        assert page.browser.title.startswith("Try the model")


def test_the_page_follows_a_version_of_other_classes(browser, tmp_path):
    folder = tmp_path / "serving"
    with page_of_classes(browser, folder, Labels(("a", "b", "c"))) as page:
        page.press("c1 good")
        wait(lambda: page.text("summary") == "b: probability 83.3 %")
        push(folder, 2)
        wait(lambda: page.server.get(MODEL).json["model_version_status"][0]["version"] == "2")
        # The page sees the new version with its next request.
        page.press(".")
        wait(lambda: page.text("version") == "Model version 2")
        wait(lambda: page.text("summary") == "Positive: probability 90.0 %")
        assert page.text("title") == "Is this review positive?"
        assert shown_classes(page) == [("positive", "90.0 %"), ("negative", "10.0 %")]


def texts_of(page, selector):
    return [found.get_property("textContent") for found in page.all(selector)]


def test_an_empty_page_names_the_classes(browser, tmp_path):
    names = tuple(f"class {n}" for n in range(15))
    with page_of_classes(browser, tmp_path / "serving", Labels(names)) as page:
        start = "Type or paste a text above. The answer is one of 15 classes: class 0, class 1, "
        assert page.text("classes").startswith(start)
        assert page.text("classes").endswith("class 11 and 3 more.")
        page.press("c3")
        wait(lambda: not page.text("classes"))
        page.press(page.keys.BACKSPACE, page.keys.BACKSPACE)
        wait(lambda: page.text("classes"))
        assert not page.browser.find_element("id", "answers-section").is_displayed()


def test_several_texts_are_a_table_that_is_sorted_and_saved(page, tmp_path):
    fill(page, "good one")
    wait(lambda: page.all(".words"))
    assert "Save as CSV" not in shown_buttons(page)
    texts = ["a bad 10", '=HYPERLINK("x") good', "ordinary, bad 9", "a good 2"]
    fill(page, "\n".join(texts))
    wait(lambda: len(page.all("#table tbody tr")) == len(texts))

    def shown():
        return texts_of(page, "#table tbody .clipped")

    assert shown() == texts
    headers = page.all("#table th")
    assert [header.get_attribute("aria-sort") for header in headers] == ["ascending", *[None] * 3]
    headers[2].find_element("css selector", "button").click()
    assert shown() == [texts[0], texts[2], texts[1], texts[3]]
    headers[2].find_element("css selector", "button").click()
    assert headers[2].get_attribute("aria-sort") == "descending"
    assert shown() == [texts[1], texts[3], texts[0], texts[2]]
    folder = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", folder)
    page.browser.find_element("id", "save").click()
    saved = tmp_path / "answers.csv"
    wait(saved.exists)
    content = saved.read_bytes().decode("utf-8-sig")
    assert [(row["text"], row["class"]) for row in csv.DictReader(content.splitlines())] == [
        (f"'{texts[1]}", "positive"),  # a spreadsheet must not calculate it
        (texts[3], "positive"),
        (texts[0], "negative"),
        (texts[2], "negative"),
    ]


def test_text_from_right_to_left_begins_at_the_right(page):
    fill(page, "טלפון good\nplain good")
    wait(lambda: len(page.all(".words")) == 2)
    directions = [found.value_of_css_property("direction") for found in page.all(".review")]
    assert directions == ["rtl", "ltr"]
    [field] = page.all("textarea")
    assert field.value_of_css_property("direction") == "rtl"


def test_the_history_is_kept_by_the_browser_until_it_is_removed(page):
    assert not page.browser.find_element("id", "history").is_displayed()
    fill(page, "good <b>first</b>")
    wait(lambda: page.text("summary"))
    page.browser.find_element("id", "clear").click()
    fill(page, "bad second")
    wait(lambda: page.text("summary"))
    page.browser.refresh()
    # The entry of the second text was written when the page was left.
    wait(lambda: page.text("history-count") == "2")
    page.browser.find_element("css selector", "#history summary").click()
    assert texts_of(page, ".entry") == ["bad second", "good <b>first</b>"]
    page.all(".entry")[1].click()
    wait(lambda: page.text("summary") == "Positive: probability 90.0 %")
    assert page.focused() == "reviews"
    page.browser.find_element("id", "forget").click()
    assert not page.browser.find_element("id", "history").is_displayed()
    fill(page, "")
    page.browser.refresh()
    wait(lambda: not page.all("#loading"))
    assert not page.browser.find_element("id", "history").is_displayed()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_fit_into_the_page(browser, tmp_path, width):
    labels = Labels(("a" * 300, "a long name of a class with blanks " * 6, "日本語" * 40))
    try:
        with page_of_classes(browser, tmp_path / "serving", labels) as page:
            resize(browser, width)
            fill(page, "c0\nc1\nc2")
            wait(lambda: len(page.all(".words")) == 3)
            script = "return document.documentElement.scrollWidth"
            assert browser.execute_script(script) <= width
    finally:
        resize(browser)


@pytest.mark.parametrize(
    "path, header", [(f"{PREFIX}/", False), (f"{PREFIX}/", True), (PREFIX, True)]
)
def test_the_page_works_behind_a_proxy_with_a_path_prefix(browser, serving, path, header):
    with behind_a_prefix(serving, header) as server:
        page = Page(browser, server, path)
        assert not page.all("#loading")
        assert page.all("main")[0].value_of_css_property("max-width") == "768px"  # it has its style
        page.press("a good phone")
        wait(lambda: page.all(".words"))
        assert page.text("summary") == "Positive: probability 90.0 %"
        page.close()


def test_a_page_without_its_script_names_the_remedy(browser, serving):
    with behind_a_prefix(serving, header=False) as server:
        page = Page(browser, server, PREFIX)
        assert "Open the address with a slash at its end" in page.text("loading")
    browser.get_log("browser")


@pytest.mark.parametrize(
    "sent, first",
    [
        ("/a/b_c", "/a/b_c/page.js"),
        ("/a/", "/a/page.js"),
        ("", "page.js"),
        ("//host", "page.js"),
        ("https://host/a", "page.js"),
        ('/"><script>', "page.js"),
    ],
)
def test_a_prefix_is_a_path_or_ignored(server, sent, first):
    page = server.request("GET", "/", headers={"X-Forwarded-Prefix": sent}).content.decode()
    assert f'<script src="{first}"' in page


def test_the_page_forbids_other_hosts(server):
    assert "default-src 'none'" in server.get("/").headers["content-security-policy"]
    for name, kind in (
        *((script.name, "javascript") for script in PAGE.glob("*.js")),
        ("page.css", "css"),
        ("icon.svg", "svg"),
    ):
        answer = server.get(f"/{name}")
        assert answer.status == 200 and kind in answer.headers["content-type"]
