"""The check of data before a run: all problems at once, and settings with which a run starts."""

import csv
import dataclasses
import gzip
import io
import json
import os
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.init import create_project
from pipeline.config import load_config
from pipeline.data_check import converted as converted_module
from pipeline.data_check import sample as sample_module
from pipeline.data_check.check import check_data
from pipeline.data_check.texts import script
from pipeline.data_convert.convert import LOOK
from pipeline.data_convert.encodings import find_change
from preprocessing.reading.contents import JSON_DOCUMENT
from tests.pipeline import exports

REVIEWS = "".join(
    json.dumps({"rating": n % 5 + 1, "title": f"Title {n}", "text": f"A text of number {n}"}) + "\n"
    for n in range(200)
)


def write(folder, **files):
    """Write files, whose names have `__` in place of a dot, into a new folder."""
    for name, data in files.items():
        path = folder / "in" / name.replace("__", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder / "in"


ENVIRON = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}


def look(folder, *overrides, config="sample"):
    words = [f"data.input_base={folder}", *overrides]
    return check_data(load_config(config, words, environ={}), is_own=config != "sample")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that the examples of a property share."""
    return tmp_path_factory.mktemp("any") / "in"


def look_again(tmp_path, check):
    """Run the commands of a check, and look with its settings."""
    for problem in check.problems:
        for command in problem.commands:
            subprocess.run(command, shell=True, check=True, env=ENVIRON)
    path = tmp_path / "mine.yaml"
    path.write_text(check.settings)
    return check_data(load_config(str(path), environ={}))


APP_STORE = [
    {
        "type": "customerReviews",
        "id": str(n),
        "attributes": {"rating": n % 5 + 1, "title": f"Titel {n}", "body": f"Größe Nummer {n}"},
    }
    for n in range(300)
]
CASES = {
    "json document": (
        {"it's__json": json.dumps({"data": APP_STORE, "links": {"self": "x"}}, indent=1)},
        {
            "attributes.rating": "label",
            "attributes.title": "title",
            "attributes.body": "text",
        },
        ["negative", "positive"],
        1,
    ),
    "json list": (
        {"a__json": json.dumps([one["attributes"] for one in APP_STORE])},
        {"rating": "label", "title": "title", "body": "text"},
        ["negative", "positive"],
        1,
    ),
    "support": (
        {"support__csv": exports.support_desk()},
        {"Kategorie": "label", "Betreff": "title", "Beschreibung": "text"},
        ["Lieferung", "Rechnung", "Rückgabe", "Technik"],
        3,
    ),
    "app store": (
        {"reviews_com.example_202403__tsv": exports.app_store()},
        {"Star Rating": "label", "Review Title": "title", "Review Text": "text"},
        ["negative", "positive"],
        1,
    ),
    "shop": (
        {"shop__jsonl": exports.shop()},
        {"bewertung": "label", "titel": "title", "rezension": "text"},
        ["negative", "positive"],
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_settings_of_one_look_suffice_for_a_run(tmp_path, name):
    files, roles, classes, problems = CASES[name]
    check = look(write(tmp_path, **files))
    assert not check.starts and check.is_settled and check.is_complete
    assert len(check.problems) == problems
    [file] = check.files
    assert {one.name: one.role for one in file.columns if one.role != "ignored"} == roles
    assert all(one.example for one in file.columns)
    assert file.lines == 300 and list(check.task.classes) == classes
    again = look_again(tmp_path, check)
    assert again.starts and again.problems == ()
    # What a run would read is what the first look has shown.
    for field in ("reading", "labels", "task", "splits", "counts", "texts", "examples"):
        assert getattr(again, field) == getattr(check, field), field


def test_everything_that_is_missing_is_there_at_once(tmp_path):
    folder = write(
        tmp_path,
        a__csv=exports.support_desk(),
        b__csv=exports.support_desk(),
        login__html="<!DOCTYPE html><html><body>Log in</body></html>",
    )
    check = look(folder)
    encoding, columns, page, copy, labels = check.problems
    assert "a.csv, b.csv are Windows-1252 (or Latin-1)" in encoding.message
    assert "set data.columns.label and data.columns.text (1 more file has" in columns.message
    assert "login.html is a web page" in page.message
    assert "a.csv and " in copy.message and "contain the same texts" in copy.message
    assert "the meaning of the labels" in labels.message
    assert all(problem.settings or problem.commands for problem in check.problems)
    again = look_again(tmp_path, check)
    assert again.starts and again.problems == () and again.counts == check.counts


def test_a_file_without_reviews_is_left_out_by_a_setting(tmp_path):
    folder = write(tmp_path, reviews__jsonl=REVIEWS, products__csv="id,price\n1,2.50\n2,3.50\n")
    check = look(folder)
    [problem] = check.problems
    assert "products.csv" in problem.message
    assert yaml.safe_load(problem.settings) == {"data": {"splits": {"train": "**/*.jsonl"}}}
    assert look_again(tmp_path, check).starts


def test_a_file_that_no_glob_can_leave_out_is_moved_by_a_command(tmp_path):
    files = {"a__jsonl": REVIEWS, "b__jsonl": REVIEWS.replace("number", "another number")}
    folder = write(tmp_path, **files, log__jsonl='{"at": 3}\n' * 9, copy__jsonl=REVIEWS)
    check = look(folder)
    log, copy = check.problems
    assert log.settings == copy.settings == ""
    assert "log.jsonl" in log.commands[0] and "copy.jsonl" in copy.commands[0]
    again = look_again(tmp_path, check)
    assert again.starts and len(again.files) == 2


def test_a_file_with_other_unknown_columns_is_left_out_or_renamed(tmp_path):
    first = "".join(f"{'ab'[n % 2]};the first text is {n}\n" for n in range(60))
    second = "".join(f"{'ab'[n % 2]},the second text is {n}\n" for n in range(50))
    folder = write(tmp_path, a__csv=f"Art;Nachricht\n{first}", b__csv=f"Thema,Inhalt\n{second}")
    check = look(folder)
    messages = [problem.message for problem in check.problems]
    [renamed] = [message for message in messages if "to read it too" in message]
    assert "label `Thema`, text `Inhalt`: rename them" in renamed
    again = look_again(tmp_path, check)
    assert again.starts and len(again.files) == 1


def test_each_split_requires_two_classes(tmp_path):
    rows = "".join(f"5,text number {n}\n" for n in range(90))
    check = look(write(tmp_path, a__csv=f"rating,text\n{rows}"))
    [problem] = check.problems
    assert not check.starts and not check.is_settled
    assert "train: every review is positive; eval: every review is positive" in problem.message
    check = look(write(tmp_path, a__csv="rating,text\n5,one text\n1,another text\n"))
    assert " has no line" in check.problems[0].message
    assert "increase data.split_fractions" in check.problems[0].message


def test_a_setting_names_a_class_that_the_files_lack(tmp_path):
    folder = write(tmp_path, a__jsonl=REVIEWS)
    check = look(folder, "data.labels=stars", "evaluation.min_class_recall={6: 0.5}")
    [problem] = check.problems
    assert problem.message.startswith("evaluation.min_class_recall: no class is called '6'")


def test_labels_that_are_ids_are_no_classes_of_any_task(tmp_path):
    rows = "".join(f"id{n},text number {n}\n" for n in range(90))
    check = look(write(tmp_path, a__csv=f"label,text\n{rows}"))
    [problem] = check.problems
    assert "these are ids or texts" in problem.message and not check.is_settled


def test_two_columns_that_may_be_the_text_are_a_question_with_both(tmp_path):
    rows = [
        {
            "sterne": n % 5 + 1,
            "lob": f"Sehr gut gefallen hat mir die Nummer {n}",
            "kritik": f"Nicht gefallen hat mir die andere Nummer {n}",
        }
        for n in range(100)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    check = look(write(tmp_path, umfrage__jsonl=lines))
    [question] = [problem for problem in check.problems if problem.choices]
    assert question.is_blocking
    texts = [yaml.safe_load(one.settings)["data"]["columns"]["text"] for one in question.choices]
    assert texts == ["lob", "kritik"]
    assert question.choices[1].meaning == rows[0]["kritik"]
    assert "# or: --set data.columns.text=kritik" in check.settings
    assert look_again(tmp_path, check).starts


def test_another_likely_text_beside_a_known_one_does_not_stop_a_run(tmp_path):
    rows = [
        {"rating": n % 5 + 1, "text": f"short text {n} here", "remark": f"a longer remark of {n}"}
        for n in range(100)
    ]
    check = look(write(tmp_path, a__jsonl="".join(json.dumps(row) + "\n" for row in rows)))
    [question] = check.problems
    assert check.starts and not question.is_blocking
    assert "`text`, `remark`" in question.message


def columns_of(tmp_path, rows):
    """Return role -> column of a CSV file with these rows, as one check proposes them."""
    lines = io.StringIO(newline="")
    table = csv.DictWriter(lines, rows[0])
    table.writeheader()
    table.writerows(rows)
    check = look(write(tmp_path, a__csv=lines.getvalue()))
    return yaml.safe_load(check.settings)["data"]["columns"]


WORDS = "the room was clean and quiet, and the staff were kind to us"
LABELS = {
    "a rating in words": {"airline": "Air {n3}", "service": "{n5} stars"},
    "a rating among classes": {"class": "Class {n3}", "overall rating": "{n10}"},
    "a recommendation": {"seat type": "Seat {n3}", "recommended": "{yes}"},
    "a sentiment among topics": {"category": "Topic {n3}", "reader sentiment": "{mood}"},
    "a sentiment of another language": {"categoría": "{n3}", "sentimiento": "{mood}"},
    "a rating beside that of the hotel": {"average score": "{n3}.5", "reviewer score": "{n10}"},
    "a rating beside the first hotel's": {"hotel score": "7.7", "guest score": "{n10}"},
    "a word among counts": {"funny": "{n30}", "verdict": "{yes}"},
}


@pytest.mark.parametrize("name", LABELS)
def test_a_rating_is_the_label_of_a_review_and_not_its_topic_or_a_count(tmp_path, name):
    rows = [
        {
            column: value.format(
                n3=n % 3,
                n5=n % 5 + 1,
                n10=n % 10 + 1,
                n30=n % 30,
                yes="ny"[n % 2],
                mood="+-"[n % 2],
            )
            for column, value in LABELS[name].items()
        }
        | {"review": f"{WORDS} {n}"}
        for n in range(200)
    ]
    assert columns_of(tmp_path, rows) == {"label": [*LABELS[name]][-1], "text": "review"}


def test_the_text_is_the_column_with_its_name_and_no_list(tmp_path):
    rows = [
        {
            "about the product": f"{WORDS}, {WORDS}, {WORDS} {n}",
            "tags": str([f"{WORDS}, {WORDS}", WORDS, f"stay {n}"]),
            "user review": f"{WORDS} {n}",
            "reviewer score": n % 5 + 1,
        }
        for n in range(100)
    ]
    assert columns_of(tmp_path, rows) == {"label": "reviewer score", "text": "user review"}


def test_a_sentiment_in_the_name_of_the_texts_is_no_time(tmp_path):
    rows = [
        {"sentiment_text": f"{WORDS} {n}", "about": f"{WORDS}, {WORDS} {n}", "grade": n % 5 + 1}
        for n in range(100)
    ]
    assert columns_of(tmp_path, rows) == {"label": "grade", "text": "sentiment_text"}


def test_a_column_of_several_ids_is_no_text(tmp_path):
    rows = [
        {"opinion of us": f"{WORDS} {n}", "tweet_ids": f"{n} " * 20, "grade": n % 5 + 1}
        for n in range(100)
    ]
    assert columns_of(tmp_path, rows) == {"label": "grade", "text": "opinion of us"}
    (tmp_path / "in" / "a.csv").unlink()
    lines = "".join(f"{row['tweet_ids']},{row['grade']}\n" for row in rows)
    [problem] = look(write(tmp_path, a__csv=f"tweet_ids,grade\n{lines}")).problems
    assert "no column looks like texts" in problem.message


@pytest.mark.parametrize("name", ["queue_name", "ticket type name"])
def test_a_queue_is_a_label_though_it_is_a_name(tmp_path, name):
    rows = [
        {"source": ("web", "mail")[n % 2], name: "abc"[n % 3], "remarks": f"{WORDS} {n}"}
        for n in range(100)
    ]
    assert columns_of(tmp_path, rows) == {"label": name, "text": "remarks"}


def test_numbers_without_a_gap_may_be_labels_beside_words(tmp_path):
    rows = "".join(f"{n % 20},{'abc'[n % 3]},a text of number {n}\n" for n in range(200))
    messages = [
        one.message for one in look(write(tmp_path, a__csv=f"y,site,post\n{rows}")).problems
    ]
    assert "2 columns may be the label: `site`, `y`; choose one" in messages


def test_a_list_beside_the_texts_does_not_prevent_a_proposal(tmp_path):
    rows = [
        {
            "Positive": f"the park {n}" if n % 3 else "nothing positive",
            "Negative": f"the bed {n}" if n % 2 else "nothing negative",
            "Score": n % 5 + 1,
            "Tags": str([f"leisure trip {n}", "couple", "stayed for two nights"]),
        }
        for n in range(100)
    ]
    assert columns_of(tmp_path, rows) == {"label": "Score", "text": "Positive"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"opinion": "{words} {n}", "by": "Name {n}"}, "may be `opinion`, but no column looks"),
        ({"grade": "{mood}", "days": "{n}"}, "no column looks like texts"),
        (
            {"grade": "{mood}", "opinion": "b'{words} {n}'"},
            "label `grade` and text `opinion`: ",
        ),
    ],
)
def test_columns_that_lack_a_label_or_a_text_are_a_problem_that_says_so(tmp_path, row, words):
    rows = [
        {name: value.format(words=WORDS, n=n, mood="+-"[n % 2]) for name, value in row.items()}
        for n in range(200)
    ]
    lines = io.StringIO(newline="")
    table = csv.DictWriter(lines, row)
    table.writeheader()
    table.writerows(rows)
    [problem] = look(write(tmp_path, a__csv=lines.getvalue())).problems
    assert words in problem.message and not problem.settings


def test_the_title_of_a_job_or_a_product_is_no_title_of_the_text(tmp_path):
    rows = [
        {
            "job_title": f"Engineer {n % 7}",
            "stars": n % 5 + 1,
            "headline": f"Good and bad {n}",
            "opinion": f"{WORDS} {n}",
        }
        for n in range(100)
    ]
    found = {"label": "stars", "title": "headline", "text": "opinion"}
    assert columns_of(tmp_path, rows) == found
    without = [{name: row[name] for name in row if name != "headline"} for row in rows]
    (tmp_path / "in" / "a.csv").unlink()
    assert columns_of(tmp_path, without) == {"label": "stars", "text": "opinion"}


@pytest.mark.parametrize(
    ("labels", "setting"),
    [
        (("gut", "schlecht", "mixed"), {"schlecht": "negative", "mixed": None, "gut": "positive"}),
        (
            ("Recommended", "Not Recommended", "mixed"),
            {"not recommended": "negative", "mixed": None, "recommended": "positive"},
        ),
        (("正面", "负面", "中性"), {"负面": "negative", "中性": None, "正面": "positive"}),
        (("1", "2", "3"), "stars"),
        (("red", "green", "blue"), "each"),
    ],
)
def test_labels_of_unknown_meaning_get_a_value_of_the_setting(tmp_path, labels, setting):
    rows = "".join(f"{labels[n % 3]},text number {n}\n" for n in range(90))
    check = look(write(tmp_path, a__csv=f"label,text\n{rows}"))
    [problem] = check.problems
    assert problem.settings == problem.choices[0].settings
    again = look_again(tmp_path, check)
    assert again.starts
    assert load_config(str(tmp_path / "mine.yaml"), environ={}).data.labels == setting


@pytest.mark.parametrize(
    ("text", "script", "words"),
    [
        ("房间很大，服务很好", "Han", 10),
        ("ห้องพักสะอาดมาก", "Thai", 11),
        ("방이 크고 깨끗해요", "Hangul", 4),
        ("the room was clean", "Latin", 5),
    ],
)
def test_a_syllable_is_a_word_of_texts_without_blanks_between_words(tmp_path, text, script, words):
    rows = "".join(f"{n % 5 + 1},{text} {n}\n" for n in range(100))
    check = look(write(tmp_path, a__csv=f"rating,text\n{rows}"))
    assert check.starts and check.problems == ()
    assert check.texts.scripts == {script: 1}
    assert check.texts.words == (words,) * 4


def test_each_other_task_has_its_classes_or_the_reason_why_it_is_not_possible(tmp_path):
    check = look(write(tmp_path, a__jsonl=REVIEWS))
    assert check.starts and check.problems == ()
    assert [(label.name, label.read_as) for label in check.labels] == [
        ("1", "negative"),
        ("2", "negative"),
        ("3", "left out"),
        ("4", "positive"),
        ("5", "positive"),
    ]
    stars, each = check.other_tasks
    assert stars.classes == each.classes == ("1", "2", "3", "4", "5")
    check = look(write(tmp_path, a__jsonl=REVIEWS), "data.labels=each")
    assert [task.name for task in check.other_tasks] == ["sentiment", "stars"]
    words = "label,text\n" + "".join(f"{'ab'[n % 2]},text {n}\n" for n in range(50))
    check = look(write(tmp_path, a__jsonl=REVIEWS, b__csv=words), "data.labels=each")
    assert check.other_tasks[1].classes == ("1", "2", "3", "4", "5")


def test_a_class_with_too_few_lines_is_left_out_by_a_mapping(tmp_path):
    rows = "".join(f"{'ab'[n % 2]},text {n}\n" for n in range(50))
    folder = write(tmp_path, a__csv=f"label,text\n{rows}rare,the only text\n")
    check = look(folder, "data.labels=each")
    [problem] = check.problems
    labels = yaml.safe_load(problem.settings)["data"]["labels"]
    assert labels == {"a": "a", "b": "b", "rare": None}
    assert look_again(tmp_path, check).starts


def test_a_problem_that_another_one_hides_is_settled_too(tmp_path):
    """A run ends with the lines without a label before it counts those of a class."""
    rows = "".join(f"{('a', '1e3', 'a', '1e3', '')[n % 5]},text {n}\n" for n in range(100))
    folder = write(tmp_path, a__csv=f"label,text\n{rows}rare,the only text\n")
    check = look(folder, "data.labels=each")
    unlabelled, few = check.problems
    assert unlabelled.message.startswith("20 of 101 lines have no label")
    assert "too few lines of rare (1)" in few.message
    # The label 1e3 is not the number 1000.
    assert "'1e3': '1e3'" in check.settings
    again = look_again(tmp_path, check)
    assert again.starts and [label.name for label in again.labels] == ["1e3", "a", "rare"]


def test_the_mapping_without_a_rare_class_joins_labels_that_differ_only_in_case(tmp_path):
    rows = "".join(f"{('Bill', 'bill', 'Bill', 'other')[n % 4]},text {n}\n" for n in range(80))
    folder = write(tmp_path, a__csv=f"label,text\n{rows}rare,the only text\n")
    check = look(folder, "data.labels=each")
    labels = yaml.safe_load(check.settings)["data"]["labels"]
    assert labels == {"bill": "Bill", "other": "other", "rare": None}
    assert look_again(tmp_path, check).starts


# With `each` these labels are two classes, and in a mapping they would be one.
ALIKE = pytest.mark.parametrize("alike", [("2.5", "2.50"), ("1", "positive")])


@ALIKE
def test_no_mapping_without_a_rare_class_is_proposed_that_a_run_refuses(tmp_path, alike):
    rows = "".join(f"{alike[n % 2]},text {n}\n" for n in range(80))
    folder = write(tmp_path, a__csv=f"label,text\n{rows}rare,the only text\n")
    [problem] = look(folder, "data.labels=each").problems
    assert "too few lines of rare (1)" in problem.message
    assert problem.settings == ""


@ALIKE
def test_no_mapping_without_a_held_out_class_is_proposed_that_a_run_refuses(tmp_path, alike):
    train = "".join(f"{alike[n % 2]},text {n}\n" for n in range(80))
    test = "".join(f"{(*alike, 'rare')[n % 3]},test {n}\n" for n in range(30))
    folder = write(tmp_path, train__csv=f"label,text\n{train}", test__csv=f"label,text\n{test}")
    splits = "data.splits={train: train.csv, test: test.csv}"
    [problem] = look(folder, "data.labels=each", splits).problems
    assert "no line for training has the class rare" in problem.message
    assert problem.settings == ""


def test_no_mapping_is_proposed_if_it_would_leave_out_no_class(tmp_path):
    # The eval split, which is made by hashes, has texts of one class alone.
    rows = "".join(f"{'ab'[n % 2]},text {n}\n" for n in range(12))
    check = look(write(tmp_path, a__csv=f"label,text\n{rows}"), "data.labels=each")
    [problem] = check.problems
    assert problem.message.startswith("each split requires lines of two classes: ")
    assert problem.settings == "" and not check.is_settled


def test_texts_that_are_all_equal_are_the_reason_of_empty_splits(tmp_path):
    rows = "".join(f"{'ab'[n % 2]},the very same text\n" for n in range(30))
    check = look(write(tmp_path, a__csv=f"label,text\n{rows}"), "data.labels=each")
    [problem] = check.problems
    assert "eval has no line; test has no line; of 30 texts only 1 is different" in problem.message


def test_texts_that_also_occur_with_another_class_are_counted(tmp_path):
    """Two people filed the same ticket under different topics."""
    rows = "".join(f"{'ab'[n % 2]},text {n}\n" for n in range(200))
    rows += "a,text 0\nb,text 1\nb,text 1\na,text 1\nb,text 2\n"
    found = look(write(tmp_path, a__csv=f"label,text\n{rows}"), "data.labels=each").texts
    # Text 0 has one class; text 1 is there four times, and text 2 twice.
    assert (found.number, found.duplicates, found.contradictions) == (205, 5, 6)


@pytest.mark.parametrize(
    ("names", "mapping"),
    [
        (["World", "Rare", "Sports"], {"0": "World", "1": None, "2": "Sports"}),
        # The names of the classes are not exactly those in the file.
        ([" World ", "Rare", "__label__4.0"], {"0": "World", "1": None, "2": "4"}),
        (["True", "Rare", "true"], {"0": "true", "1": None, "2": "true"}),
    ],
)
def test_the_mapping_without_a_rare_class_names_the_numbers_of_hugging_face(
    tmp_path, names, mapping
):
    stored = {"label": {"names": [*names, "Other"], "_type": "ClassLabel"}}
    meta = {"huggingface": json.dumps({"info": {"features": stored}})}
    labels = [(0, 2, 3)[n % 3] for n in range(80)] + [1]
    rows = {"text": [f"text {n}" for n in range(81)], "label": labels}
    (tmp_path / "in").mkdir()
    table = pa.table(rows).replace_schema_metadata(meta)
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    check = look(tmp_path / "in", "data.labels=each")
    assert yaml.safe_load(check.settings)["data"]["labels"] == {**mapping, "3": "Other"}
    assert look_again(tmp_path, check).starts


def test_names_of_numbers_in_one_of_two_files_settle_the_meaning_of_both(tmp_path):
    names = {"label": {"names": ["positive", "neutral", "negative"]}}
    meta = {"huggingface": json.dumps({"info": {"features": names}})}
    rows = {"label": [n % 3 for n in range(90)], "text": [f"text {n}" for n in range(90)]}
    table = "".join(f"{n % 2},more {n}\n" for n in range(60))
    folder = write(tmp_path, b__csv=f"label,text\n{table}")
    pq.write_table(pa.table(rows).replace_schema_metadata(meta), folder / "a.parquet")
    check = look(folder)
    assert yaml.safe_load(check.settings)["data"]["labels"] == {
        "0": "positive",
        "1": None,
        "2": "negative",
    }
    assert look_again(tmp_path, check).starts


def test_lines_that_cannot_be_used_are_accepted_by_a_setting(tmp_path):
    check = look(write(tmp_path, a__jsonl=REVIEWS + "no object\n" * 5))
    [problem] = check.problems
    assert "a.jsonl:201 broken_json (" in problem.message
    assert yaml.safe_load(problem.settings) == {"data": {"max_rejected_fraction": 0.025}}
    assert look(tmp_path / "in", "data.max_rejected_fraction=0.025").starts


def test_a_run_with_unusable_lines_in_a_sample_would_not_start(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_module, "_LINES", 2_000)
    lines = [f"{n % 5 + 1},text {n}{',more' * (n % 3 > 0)}\n" for n in range(9_000)]
    found = look(write(tmp_path, a__csv="rating,text\n" + "".join(lines)))
    [problem] = found.problems
    assert "in the sample: 1999 of 2999 lines" in problem.message
    assert not found.is_complete and not found.starts


@pytest.mark.parametrize(
    ("mapping", "remedy"),
    [
        ("{Open: todo, shut: done, lost: null}", {"open": "todo", "shut": "done"}),
        ("{shut: done, OPEN: todo}", {"shut": "done", "open": "todo", "new": None}),
        (
            "{open: 0, shut: 1, lost: null}",
            {"open": "negative", "shut": "positive", "lost": None, "new": None},
        ),
    ],
    ids=["a label that no line has", "a label without a class", "sentiment"],
)
def test_the_classes_of_a_mapping_stay_if_its_labels_do_not_fit(tmp_path, mapping, remedy):
    labels = ["open", "shut", "new"] if "new" in remedy else ["open", "shut"]
    rows = [f"{labels[n % len(labels)]},ticket of number {n}\n" for n in range(300)]
    folder = write(tmp_path, a__csv="label,text\n" + "".join(rows))
    check = look(folder, f"data.labels={mapping}")
    [problem] = check.problems
    proposed = yaml.safe_load(problem.settings)["data"]["labels"]
    assert list(proposed.items()) == list(remedy.items())
    assert look_again(tmp_path, check).starts
    assert check.task.classes == tuple(name for name in remedy.values() if name)


@pytest.mark.parametrize("window", [1, 2])
def test_a_mapping_keeps_the_labels_that_a_window_of_spans_lacks(tmp_path, window):
    for day in (1, 2):
        rows = [f"{['open', 'shut', 'new'][n % 3]},ticket {n} of day {day}\n" for n in range(300)]
        (tmp_path / f"day-{day}.csv").write_text("label,text\n" + "".join(rows))
    mapping = "data.labels={open: todo, lost: todo, shut: done}"
    check = look(tmp_path / "day-{SPAN}.csv", f"data.window={window}", mapping)
    [problem] = check.problems
    proposed = yaml.safe_load(problem.settings)["data"]["labels"]
    assert proposed == {"open": "todo", "lost": "todo", "shut": "done", "new": None}
    assert look_again(tmp_path, check).starts


def test_an_unlabelled_split_is_no_class(tmp_path):
    train, unlabelled = (
        "".join(json.dumps({"label": of(n), "text": f"{name} {n}"}) + "\n" for n in range(100))
        for name, of in (("train", lambda n: n % 2), ("other", lambda n: -1))
    )
    found = look(write(tmp_path, train__jsonl=train, unsupervised__jsonl=unlabelled))
    [problem] = found.problems
    assert "100 of 200 lines have no label" in problem.message and not found.starts
    assert "unsupervised.jsonl" in found.unused[0] and "marks a missing label" in found.unused[0]


def test_a_problem_without_a_setting_is_not_settled(tmp_path):
    check = look(
        write(tmp_path, a__csv="version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    )
    [problem] = check.problems
    assert "git lfs pull" in problem.message
    assert not check.starts and not check.is_settled
    check = look(tmp_path / "missing")
    [problem] = check.problems
    assert "does not exist" in problem.message and not check.is_settled


def test_a_large_file_is_read_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_module, "_LINES", 100)
    monkeypatch.setattr(sample_module, "_LEAST", 10)
    monkeypatch.setattr(sample_module, "_LARGE", 1 << 20)
    many = "".join(f"__label__{n // 20_000 + 1} text {n} {'x' * 80}\n" for n in range(40_000))
    check = look(write(tmp_path, a__txt=many, b__jsonl=REVIEWS))
    first, second = check.files
    assert not check.is_complete and not first.is_complete
    assert first.lines < 40_000
    # The places are distributed over the file, which is sorted.
    assert {label.name for label in check.labels} >= {"1", "2"}
    assert second.lines == 200


@pytest.mark.slow
def test_a_class_that_a_sample_lacks_is_a_note(tmp_path, monkeypatch):
    rows = "".join(f"{'ab'[n // 2_000]},text number {n}\n" for n in range(4_000))
    folder = write(tmp_path, sorted__csv=f"label,text\n{rows}")
    assert look(folder, "data.labels=each").problems == ()
    monkeypatch.setattr(sample_module, "_LINES", 100)
    check = look(folder, "data.labels=each")
    [note] = check.problems
    assert check.starts and not check.is_complete and note.message.startswith("in the sample: ")


def test_of_very_many_files_some_of_each_split_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(converted_module, "LOOK", LOOK._replace(files=5))
    lines = REVIEWS.splitlines(keepends=True)
    files = {f"{'test' if n == 19 else 'train'}_{n}__jsonl": lines[n] * 2 for n in range(20)}
    check = look(write(tmp_path, **files), "data.splits={train: 'train*', test: 'test*'}")
    assert check.number_of_files == 20 and not check.is_complete
    assert [file.group for file in check.files] == ["train"] * 5 + ["test"]


def test_held_out_files_and_limits_are_those_of_a_run(tmp_path):
    folder = write(tmp_path, train__jsonl=REVIEWS, test__jsonl=REVIEWS[: len(REVIEWS) // 4])
    splits = "data.splits={train: train.jsonl, test: test.jsonl}"
    check = look(folder, splits)
    assert "duplicate_across_splits" in check.counts
    assert [file.group for file in check.files] == ["train", "test"]
    limited = look(folder, splits, "data.max_examples={train: 20}")
    assert 0 < limited.splits["train"] <= 20 < check.splits["train"]


def test_the_settings_of_a_file_stay_and_those_of_the_sample_do_not(tmp_path):
    folder = write(tmp_path, shop__jsonl=exports.shop())
    own = tmp_path / "own.yaml"
    own.write_text(f"paths:\n  root: {tmp_path}/runs\ntraining:\n  epochs: 7\n")
    check = look(folder, config=str(own))
    values = yaml.safe_load(check.settings)
    assert values["training"] == {"epochs": 7}
    assert values["paths"] == {"root": f"{tmp_path}/runs"}
    assert set(yaml.safe_load(look(folder).settings)) == {"data", "transform", "training"}


def test_the_settings_of_a_project_mean_the_same_in_every_working_directory(tmp_path, monkeypatch):
    folder = write(tmp_path, shop__jsonl=exports.shop())
    create_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    new = tmp_path / "mine" / "new.yaml"
    new.write_text(look(folder, config="mine.yaml").settings)
    monkeypatch.chdir(tmp_path)
    paths = [load_config(f"mine/{name}", environ={}).paths for name in ("mine.yaml", "new.yaml")]
    assert paths[0] == paths[1]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A plain text, 5 of 5", "Latin"),
        ("Очень хороший OK", "Cyrillic"),
        ("非常好，推荐", "Han"),
        ("とても良い", "Japanese"),
        ("아주 좋아요", "Hangul"),
        ("ممتاز", "Arabic"),
        ("5/5 :-)", "no letters"),
    ],
)
def test_the_writing_system_of_a_text(text, name):
    assert script(text) == name


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("Größe\n" * 9, "cp1252", "WINDOWS-1252"),
        ("label\ttext\n" * 9, "utf-16", "UTF-16"),
        ("label\ttext\n" * 9, "utf-16-le", "UTF-16LE"),
        ("label\ttext\n" * 9, "utf-32", "UTF-32"),
        ('[{"a": 1}]', "utf-8", JSON_DOCUMENT),
        ('{"a": 1}\n{"a": 1}\n', "utf-8", None),
        ('{"a": 1\n{"a": 1}\n{"a": 1}\n', "utf-8", None),
        ("评分很好\n" * 9, "gbk", "GB18030"),
        ("배송이 빨라요\n" * 9, "cp949", "CP949"),
        ("とても良い\n" * 9, "cp932", "CP932"),
        ("Größe\n" * 9, "utf-8", None),
        ("size\n" * 900 + "Größe\n", "cp1252", None),
    ],
)
def test_the_encoding_of_a_file(tmp_path, text, encoding, name):
    path = tmp_path / "file"
    path.write_bytes(text.encode(encoding))
    assert find_change(str(path), 0.01) == name


CHARACTERS = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")
CELL = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    ["5", "1", "4 von 5 Sternen", "good", "a text of some words", "NaN", '"', "{}", "2024-01-01"]
)
NAMES_OF_COLUMNS = st.lists(
    st.sampled_from(["text", "label", "rating", "Betreff", "Inhalt", "id", "note: x", "#", " "]),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_file_has_a_result_with_settings_that_load(folder, data):
    names = data.draw(NAMES_OF_COLUMNS)
    rows = data.draw(st.lists(st.tuples(*[CELL] * len(names)), max_size=8))
    kind = data.draw(st.sampled_from(["csv", "semicolons", "jsonl", "json", "bytes"]))
    if kind == "bytes":
        content = data.draw(st.binary(max_size=80))
    elif kind in ("csv", "semicolons"):
        out = io.StringIO()
        csv.writer(out, delimiter="," if kind == "csv" else ";").writerows([names, *rows])
        content = out.getvalue().encode(data.draw(st.sampled_from(["utf-8", "utf-16"])))
    else:
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        lines = map(json.dumps, objects)
        content = "\n".join(lines).encode() if kind == "jsonl" else json.dumps(objects).encode()
    folder.mkdir(exist_ok=True)
    (folder / "file.csv").write_bytes(content)
    check = look(folder)
    assert check.starts == (not any(problem.is_blocking for problem in check.problems))
    assert all("\n" not in problem.message for problem in check.problems)
    path = folder.parent / "written.yaml"
    path.write_text(check.settings)
    assert load_config(str(path), environ={}).data.input_base
    json.dumps(dataclasses.asdict(check))


def test_each_has_a_class_for_each_text_of_a_rating_and_stars_one_for_each_value(tmp_path):
    texts = ("1", "2/5", "3 von 5 Sternen", "4", "4/5", "5")
    rows = "".join(f"{texts[n % 6]}\tA text of number {n}\n" for n in range(240))
    folder = write(tmp_path, topics__tsv=f"grade\tmessage\n{rows}")
    columns = "data.columns={label: grade, text: message}"
    each = look(folder, columns, "data.labels=each")
    assert each.starts and set(each.task.classes) == set(texts)
    assert {label.name: label.lines for label in each.labels} == dict.fromkeys(texts, 40)
    stars = look(folder, columns, "data.labels=stars")
    assert stars.starts and stars.task.classes == ("1", "2", "3", "4", "5")
    assert {label.name: label.read_as for label in stars.labels}["4/5"] == "4"
    sentiment = look(folder, columns)
    assert {label.name: label.read_as for label in sentiment.labels}["4/5"] == "positive"


def test_bytes_that_cannot_be_read_are_accepted_by_a_setting(tmp_path):
    packed = gzip.compress("".join(reversed(REVIEWS.splitlines(True))).encode())
    other = REVIEWS.replace("A text", "Another text")
    check = look(write(tmp_path, a__jsonl__gz=packed[: len(packed) // 2], b__jsonl=other))
    [problem] = check.problems
    assert "are damaged" in problem.message and check.is_settled
    assert look_again(tmp_path, check).starts


def test_a_document_in_one_line_is_converted_wherever_its_list_is(tmp_path):
    reviews = [
        {"rating": {"stars": n % 5 + 1}, "text": {"body": f"Text of review {n}"}}
        for n in range(200)
    ]
    document = json.dumps({"page": 1, "next": None, "reviews": reviews})
    check = look(write(tmp_path, a__json=document))
    assert yaml.safe_load(check.settings)["data"]["columns"] == {
        "label": "rating.stars",
        "text": "text.body",
    }
    assert look_again(tmp_path, check).starts


def test_a_column_of_dates_is_no_label(tmp_path):
    rows = "".join(
        f"{n % 28 + 1}.04.2024;{'abc'[n % 3]};Some words of text {n}\n" for n in range(200)
    )
    check = look(write(tmp_path, a__csv=f"Tag;Wahl;Worte\n{rows}"))
    settings = yaml.safe_load(check.settings)["data"]
    assert settings["columns"]["label"] == "Wahl" and settings["labels"] == "each"
    assert all(not problem.choices[1:] for problem in check.problems)


def test_a_column_of_objects_is_neither_label_nor_text(tmp_path):
    rows = "".join(
        json.dumps({"rating": {"stars": n % 5 + 1}, "content": {"body": f"Text of review {n}"}})
        + "\n"
        for n in range(100)
    )
    check = look(write(tmp_path, a__jsonl=rows))
    [problem] = check.problems
    assert "`rating`, `content`: objects or lists" in problem.message
    assert not problem.settings and not check.is_settled


def test_files_of_one_name_are_moved_into_different_folders(tmp_path):
    for shop in ("shop1", "shop2"):
        (tmp_path / "in" / shop).mkdir(parents=True)
        (tmp_path / "in" / shop / "reviews.csv").write_text(
            "rating,review\n" + "".join(f"{n % 5 + 1},{shop} text {n} of many\n" for n in range(99))
        )
        (tmp_path / "in" / shop / "info.csv").write_text(f"product,price\n{shop},1\nb,2\n")
    assert look_again(tmp_path, look(tmp_path / "in")).starts
    moved = [tmp_path / "in-other" / shop / "info.csv" for shop in ("shop1", "shop2")]
    assert [file.read_text().split(",")[1] for file in moved] == ["price\nshop1", "price\nshop2"]


def test_the_commands_convert_all_of_very_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(converted_module, "LOOK", LOOK._replace(files=2))
    documents = {
        f"page{page}__json": json.dumps(
            {"reviews": [{"stars": n % 5 + 1, "text": f"text {page} {n}"} for n in range(40)]}
        )
        for page in range(5)
    }
    found = look_again(tmp_path, look(write(tmp_path, **documents)))
    assert found.starts
    assert found.number_of_files == 5
    monkeypatch.undo()
    assert look(tmp_path / "in-utf8").starts


def test_a_loss_of_many_lines_is_no_remedy(tmp_path):
    rows = "".join(f"{n % 5 + 1 if n % 3 else 'x y'},text {n} of many\n" for n in range(300))
    found = look(write(tmp_path, reviews__csv="rating,text\n" + rows))
    assert not found.starts
    assert "max_rejected_fraction" not in found.settings


@pytest.mark.slow
def test_an_encoding_that_begins_later_is_found(tmp_path):
    lines = [f"{n % 5 + 1},{'schön ' * (n > 7_000)}{'word ' * 40}{n}\n" for n in range(14_000)]
    folder = write(tmp_path, a__csv=f"rating,review\n{''.join(lines)}".encode("cp1252"))
    found = look(folder)
    assert "a.csv is Windows-1252" in found.problems[0].message
    assert look_again(tmp_path, found).starts


def test_a_document_with_half_a_character_is_converted(tmp_path):
    reviews = [{"stars": n % 5 + 1, "text": f"cut emoji \ud83d {n}"} for n in range(99)]
    document = {"links": [{"href": "a"}], "reviews": reviews}
    found = look(write(tmp_path, a__json=json.dumps(document)))
    assert found.texts.number == 79  # a fifth is neutral
    assert look_again(tmp_path, found).starts


def test_a_document_of_too_many_levels_is_a_problem(tmp_path):
    assert not look(write(tmp_path, a__json="[" * 100_000)).starts


def test_files_that_are_sorted_by_their_labels_get_a_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_module, "_LINES", 400)
    monkeypatch.setattr(sample_module, "_LARGE", 1 << 12)
    lines = [
        f"{name},text {n} about {name}\n" for name in ("billing", "return") for n in range(6_000)
    ]
    found = look(write(tmp_path, a__csv="Category,Message\n" + "".join(lines)))
    assert "labels: each" in found.settings
    assert "label: Category" in found.settings


def test_sentiment_is_not_possible_for_many_unknown_words(tmp_path):
    words = ["Positive", "Negative", "Neutral", "Irrelevant"]
    rows = "".join(f"{words[n % 4]},text {n}\n" for n in range(300))
    found = look(write(tmp_path, a__csv="sentiment,text\n" + rows))
    assert not any(task.name == "sentiment" and task.classes for task in found.other_tasks)
    assert "irrelevant: null" in found.settings
    assert look_again(tmp_path, found).starts


def test_many_files_of_an_unknown_format_are_one_problem(tmp_path):
    files = {f"text{n}__txt": f"text {n} of a review\n" for n in range(30)}
    found = look(write(tmp_path, **files))
    [problem] = [problem for problem in found.problems if problem.is_blocking]
    assert "29 more files have the same problem" in problem.message
    assert {file.encoding for file in found.files} == {""}


def test_two_files_that_differ_in_their_compression_are_converted_into_two(tmp_path):
    rows = [[f"{n % 5 + 1},schön {part} {n}\n" for n in range(99)] for part in range(2)]
    plain, packed = (f"rating,review\n{''.join(each)}".encode("utf-16") for each in rows)
    found = look(write(tmp_path, a__csv=plain, a__csv__gz=gzip.compress(packed)))
    assert found.texts.number == 158  # a fifth is neutral
    again = look_again(tmp_path, found)
    assert again.starts
    assert again.texts.number == 158


def test_the_other_answers_can_be_pasted_into_a_shell(tmp_path):
    rows = "".join(f"{n % 3},{n % 4},text {n} of many words\n" for n in range(300))
    header = "Groupe d'affectation rating,Note d'accueil rating,Message\n"
    found = look(write(tmp_path, a__csv=header + rows))
    lines = [line for line in found.settings.splitlines() if "data.columns.label=" in line]
    words = shlex.split(lines[0].removeprefix("# or: "), comments=True)
    assert [words[0], len(words)] == ["--set", 2]


def test_each_file_without_a_usable_line_is_named(tmp_path):
    rows = "".join(f"never,text {n}\n" for n in range(10))
    good = "".join(f"{('good', 'bad')[n % 2]},text {n}\n" for n in range(4000))
    files = {f"{name}__csv": f"label,text\n{rows}" for name in "abc"}
    check = look(
        write(tmp_path, good__csv=f"label,text\n{good}", **files), "data.labels={good: 1, bad: 0}"
    )
    named = [[name for name in files if name.replace("__", ".") in line] for line in check.unused]
    assert named == [[name] for name in files]


def test_an_empty_file_with_a_limit_is_a_problem(tmp_path):
    check = look(write(tmp_path, a__csv=""), "data.max_examples={train: 10}")
    assert not check.starts and check.problems


@pytest.mark.parametrize("data", ["", "rating,text\n", gzip.compress(b"", mtime=0)])
def test_an_input_without_a_record_is_a_problem_of_its_own(tmp_path, data):
    """A failed export or download leaves a file without content, or with a header alone."""
    [problem] = look(write(tmp_path, a__csv=data)).problems
    assert "because no file of data.input_base contains a record: " in problem.message


def test_a_span_without_a_usable_review_is_a_problem(tmp_path):
    days = {f"day-{n}__jsonl": REVIEWS.replace("number", f"day {n}") for n in (1, 3)}
    neutral = '{"rating": 3, "text": "neither good nor bad"}\n'
    folder = write(tmp_path, day_2__jsonl=neutral, **days)
    (folder / "day_2.jsonl").rename(folder / "day-2.jsonl")
    check = look(f"{folder}/day-{{SPAN}}.jsonl", "data.window=3")
    assert not check.starts
    assert "span 2" in check.problems[0].message
    assert "has no usable review" in check.problems[0].message


def test_spans_that_contain_all_texts_so_far_have_a_window_of_two_as_the_remedy(tmp_path):
    lines = [f"{n % 2 * 4 + 1},text of number {n}\n" for n in range(500)]
    for day in (1, 2, 3):
        (tmp_path / f"day-{day}").mkdir()
        (tmp_path / f"day-{day}" / "a.csv").write_text(
            "stars,text\n" + "".join(lines[: 200 + 100 * day])
        )
    base = f"{tmp_path}/day-{{SPAN}}"
    [problem] = look(base, "data.window=3").problems
    assert "day-1/a.csv and " in problem.message and "day-2/a.csv contain" in problem.message
    assert "if each span has all texts so far, set data.window: 2" in problem.message
    assert "data.splits" not in problem.message and not problem.commands
    again = look(base, "data.window=2")
    assert again.starts and " 100 test, 400 rejected" in again.counts


@pytest.mark.parametrize(
    "overrides", [(), ("data.labels={1: bad, 2: bad, 4: good, 5: good}",)], ids=["stars", "mapping"]
)
def test_lines_without_a_label_are_no_reason_for_another_task(tmp_path, overrides):
    rows = [(["1", "2", "4", "5"][n % 4] if n % 15 else "", n) for n in range(600)]
    content = "".join(f"{stars},text {n}\n" for stars, n in rows)
    folder = write(tmp_path, a__csv=f"stars,text\n{content}")
    check = look(folder, *overrides)
    [problem] = check.problems
    assert "40 of 600 lines have no label" in problem.message
    settings = yaml.safe_load(check.settings)["data"]
    assert settings["max_rejected_fraction"] == 0.067
    mapping = {"1": "bad", "2": "bad", "4": "good", "5": "good"}
    assert settings.get("labels") == (mapping if overrides else None)
    assert look_again(tmp_path, check).starts


def test_of_two_copies_the_longer_one_is_kept(tmp_path):
    lines = [f"{n % 5 + 1}\ta text of number {n}\n" for n in range(300)]
    folder = write(tmp_path, a__tsv="stars\ttext\n" + "".join(lines))
    (folder / "a (1).tsv").write_text("stars\ttext\n" + "".join(lines[:280]))
    check = look(folder)
    [problem] = check.problems
    assert "contain the same texts" in problem.message
    assert yaml.safe_load(check.settings)["data"]["splits"] == {"train": "a.tsv"}


def test_half_a_character_in_an_escape_is_no_other_encoding(tmp_path):
    cut = "".join(
        json.dumps({"rating": n % 2 * 4 + 1, "text": f"text {n}" + ("" if n % 10 else "\ud83d")})
        + "\n"
        for n in range(300)
    )
    [problem] = look(write(tmp_path, a__jsonl=cut)).problems
    assert "has escapes of half a character" in problem.message
    assert "iconv" not in problem.message


def test_ids_of_64_bits_are_labels_in_every_format(tmp_path):
    ids = [1_837_465_029_384_756_100, 1_837_465_029_384_756_101, 2**64 - 1]
    rows = [(ids[n % 3], f"A message of number {n}") for n in range(90)]
    table = pa.table(
        {"label": pa.array([i for i, _ in rows], pa.uint64()), "text": [t for _, t in rows]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    folder = write(
        tmp_path,
        a__parquet=(tmp_path / "a.parquet").read_bytes(),
        b__jsonl="".join(json.dumps({"label": i, "text": f"{t} b"}) + "\n" for i, t in rows),
        c__csv="label,text\n" + "".join(f"{i},{t} c\n" for i, t in rows),
    )
    check = look(folder, "data.labels=each")
    assert check.starts
    assert check.task.classes == tuple(map(str, ids))
    assert {label.lines for label in check.labels} == {90}


def test_two_columns_of_the_same_name_are_one_problem(tmp_path):
    rows = "".join(f"{n % 2 * 4 + 1},{n % 5 + 1},text {n}\n" for n in range(100))
    [problem] = look(write(tmp_path, a__csv=f"rating,rating,text\n{rows}")).problems
    assert "a.csv has 2 columns with the name 'rating'" in problem.message


def test_a_few_other_labels_do_not_make_another_task(tmp_path):
    """A footer or the rule of a table is one bad label among stars."""
    other = json.dumps({"rating": "---", "title": "---", "text": "---"}) + "\n"
    check = look(write(tmp_path, a__jsonl=REVIEWS + other * 5))
    [problem] = check.problems
    assert "label: ---" in problem.message
    assert yaml.safe_load(problem.settings) == {"data": {"max_rejected_fraction": 0.025}}
    assert yaml.safe_load(check.settings)["data"].get("labels") is None
    assert look_again(tmp_path, check).starts


def test_a_label_has_the_meanings_of_all_columns_that_contain_it(tmp_path):
    stars = "".join(f"{n % 5 + 1},text with stars {n}\n" for n in range(100))
    other = "".join(f"{n % 2},text with a label {n}\n" for n in range(100))
    check = look(write(tmp_path, a__csv=f"rating,text\n{stars}", b__csv=f"label,text\n{other}"))
    assert check.starts and {label.name: label.read_as for label in check.labels} == {
        "0": "negative",
        "1": "negative or positive",
        "2": "negative",
        "3": "left out",
        "4": "positive",
        "5": "positive",
    }
    [sentiment] = [check.task, *[task for task in check.other_tasks if task.name == "sentiment"]]
    assert not sentiment.problem


def test_a_label_of_the_test_file_alone_is_left_out_by_a_mapping(tmp_path):
    rows = "".join(f"{'ab'[n % 2]},text number {n}\n" for n in range(100))
    held_out = "a,one more\nb,two more\nNew,three more\n"
    folder = write(tmp_path, train__csv=f"label,text\n{rows}", test__csv=f"label,text\n{held_out}")
    splits = "data.splits={train: train.csv, test: test.csv}"
    check = look(folder, "data.labels=each", splits)
    [problem] = check.problems
    assert "no line for training has the class New (1 in the test files)" in problem.message
    assert "stars requires numbers" not in problem.message
    labels = yaml.safe_load(problem.settings)["data"]["labels"]
    assert labels == {"New": None, "a": "a", "b": "b"}
    assert look(folder, f"data.labels={json.dumps(labels)}", splits).starts
    without = look(folder, splits)
    found = yaml.safe_load(without.settings)["data"]["labels"]
    assert found == {label.lower(): name for label, name in labels.items()}
    assert look_again(tmp_path, without).starts


def test_the_problem_of_another_task_names_the_file_and_not_its_converted_part(tmp_path):
    records = [{"label": "ab"[n % 2], "text": f"text number {n}"} for n in range(100)]
    folder = write(tmp_path, a__json=json.dumps(records))
    [sentiment, _] = look(folder, "data.labels=each").other_tasks
    assert sentiment.problem.startswith(f"{folder}/a.json: the meaning of the labels")


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_record_in_place_of_a_header_is_never_proposed_as_names(tmp_path, separator):
    """The settings would lose this record, as the message without them shows."""
    rows = [f"My order {n} has not arrived.{separator}topic {n % 7}\n" for n in range(200)]
    folder = write(tmp_path, export__csv="".join(rows))
    check = look(folder, "data.labels=each")
    [problem] = check.problems
    assert "has no header with the names of its columns (2)" in problem.message
    assert not problem.settings and not check.is_settled
    # With a header the columns are proposed.
    folder = write(tmp_path, export__csv="".join([f"Frage{separator}Antwort\n", *rows]))
    check = look(folder, "data.labels=each")
    columns = yaml.safe_load(check.settings)["data"]["columns"]
    assert columns == {"label": "Antwort", "text": "Frage"}


def test_files_with_the_same_problem_are_one_problem(tmp_path):
    lines = {f"note{n}__txt": f"a line of note {n}\nand one more\n" * 9 for n in range(30)}
    pages = {f"page{n}__pdf": "%PDF-1.4\n" * 99 for n in range(2)}
    check = look(write(tmp_path, **lines, **pages), "data.labels=each")
    messages = [problem.message for problem in check.problems]
    assert sorted(message.rpartition(" (")[2] for message in messages) == [
        "1 more file has the same problem)",
        "29 more files have the same problem)",
    ]
