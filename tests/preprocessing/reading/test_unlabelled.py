"""Reviews whose labels are optional: every line with a text is read, whatever its label."""

from dataclasses import replace

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts, input_columns
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    ONE_TWO,
    as_file,
    csv_text,
    got,
    read,
    write,
)

OPTIONAL = ReadOptions(reads_labels=False)


def found(path, options=OPTIONAL):
    """Return the text of each line, or the reason of a rejected one."""
    return [item if isinstance(item, str) else item[1] for item in got(read(path, options))]


FASTTEXT = [
    (b"__label__2 Good: it is", "Good: it is"),
    (b"No label: but a text", "No label: but a text"),
    (b"__label__neutral word", "word"),
    (b"__label__refund,late word", "word"),
    (b"__label__1 __label__2 both", "both"),
    (b"__label__2\ttab\r", "tab"),
    (b"  indented", "  indented"),
    (b"", "no_text"),
    (b"__label__1", "no_text"),
    (b"caf\xe9", "invalid_utf8"),
    (b"a\0b", "invalid_utf8"),
]


def test_lines_of_fasttext_are_read_with_and_without_a_label(folder):
    lines, wanted = zip(*FASTTEXT, strict=True)
    path = write(folder, "mixed.txt", b"\n".join(lines) + b"\n")
    assert found(path) == list(wanted)


def test_plain_text_without_any_label_is_a_review_on_each_line(folder):
    path = write(folder, "plain.txt", "good phone, really\nbad: very\n")
    assert found(path) == ["good phone, really", "bad: very"]
    with pytest.raises(InputError, match="no known format"):
        read(path, ReadOptions(label_map=ONE_TWO))


TABLE = [(5, "t", "five"), (3, "", "three"), ("", "t", "none"), ("?", "", "odd"), (1, "", " ")]
WANTED = ["t: five", "three", "t: none", "odd", "no_text"]


def test_csv_records_are_read_whatever_their_label_is(folder):
    path = write(folder, "labels.csv", csv_text([("rating", "title", "text"), *TABLE]))
    assert found(path) == WANTED
    without = [("title", "text"), *[row[1:] for row in TABLE]]
    assert found(write(folder, "none.csv", csv_text(without))) == WANTED
    only = write(folder, "only.csv", csv_text([("Review",), ("great",), ("poor",)]))
    assert found(only) == ["great", "poor"]


def test_json_lines_are_read_whatever_their_label_is(folder):
    lines = (
        '{"text": "no label"}\n{"rating": null, "title": "t", "text": "null"}\n'
        '{"rating": 3.0, "text": "three"}\n{"rating": 5}\n'
    )
    path = write(folder, "some.jsonl", lines)
    assert found(path) == ["no label", "t: ", "three", "no_text"]


def test_columns_that_are_set(folder):
    path = write(folder, "own.csv", csv_text([("id", "words"), (1, "first"), (2, "second")]))
    with pytest.raises(InputError, match=r"set data\.columns\.text$"):
        found(path)
    # The settings of the training name a label, which new files may lack.
    options = ReadOptions(columns={"text": "words", "label": "stars"}, reads_labels=False)
    assert found(path, options) == ["first", "second"]


TABLE_AS_TEXT = "text,label\ngreat phone,1\npoor, cheap,0\n"


@pytest.mark.parametrize("role", ["text", "title"])
@pytest.mark.parametrize("content", [TABLE_AS_TEXT, "good phone\nbad phone\n"])
def test_a_text_file_without_a_column_that_is_set_is_not_read_as_lines(folder, content, role):
    path = write(folder, "table.txt", content)
    options = ReadOptions(columns={role: "message", "label": "stars"}, reads_labels=False)
    wrong = rf"'message' \(data\.columns\.{role}\).*; if each of its lines is a text, set data\.for"
    with pytest.raises(InputError, match=wrong):
        found(path, options)
    assert found(path, replace(options, format="fasttext")) == content.splitlines()
    # New files may lack the label, which has no effect on them.
    only_label = ReadOptions(columns={"label": "stars"}, reads_labels=False)
    assert len(found(path, only_label)) == 2


def test_a_table_in_a_text_file_without_the_column_of_the_ids_is_not_read_as_lines(folder):
    options = ReadOptions(id="key", reads_labels=False)
    with pytest.raises(InputError, match=r"has no column 'key' \(--id\): its columns are"):
        found(write(folder, "table.txt", TABLE_AS_TEXT), options)
    # The lines of a text have no ids.
    assert found(write(folder, "plain.txt", "good phone\nbad phone\n"), options)


OF_TRAINING = [
    ({"sentiment": ["neg", "pos"], "title": ["t", ""], "text": ["a b", "c d"]}, {}),
    ({"score": [1, 5], "content": ["a b", "c d"], "review": ["x y", ""]}, {}),
    ({"label": [0, 1], "Title": ["t", "u"], "Content": ["a b", "c d"], "text": ["x", "y"]}, {}),
    ({"rating": [1, 5], "title": ["t", "u"], "message": ["a b", "c d"]}, {"text": "message"}),
]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("columns", "text"), OF_TRAINING)
def test_a_file_without_labels_is_read_as_in_the_training(tmp_path, kind, columns, text):
    label, *others = columns
    with_label = {"label": label, **text} if text else {}
    path = write(tmp_path, f"train/a.{kind}", as_file(kind, columns))
    options = ReadOptions(columns=with_label)
    layouts = decide_layouts(find_sources(str(tmp_path / "train"), {"all": "**"}), options)
    trained = [item[1] for item in got(read(path, options))]
    new = write(tmp_path, f"new.{kind}", as_file(kind, {name: columns[name] for name in others}))
    unlabelled = replace(options, reads_labels=False)
    assert found(new, unlabelled) != trained
    unlabelled = replace(unlabelled, trained=input_columns(layouts))
    assert found(new, unlabelled) == trained
    # Files with other columns, and columns that are set, are read as without these names.
    other = write(tmp_path, f"other.{kind}", as_file(kind, {"summary": ["s"], "reviewText": ["b"]}))
    if not text:
        assert found(other, unlabelled) == ["s: b"]
        own = replace(unlabelled, columns={"title": None, "text": others[-1]})
        assert found(new, own) == found(new, replace(own, trained=()))


def test_the_columns_of_a_training_are_kept_only_if_the_labels_decide_them(tmp_path):
    write(tmp_path, "a.csv", "rating,title,text,user\n5,t,b,u\n1,t,b,u\n")
    write(tmp_path, "b.jsonl", '{"stars": 5, "text": "a"}\n{"stars": 1, "text": "c"}\n')
    layouts = decide_layouts(find_sources(str(tmp_path), {"all": "**"}), ReadOptions())
    assert input_columns(layouts) == ()
