"""The lines that show how files are read."""

import pytest

from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import parquet_bytes, write

MARC = b'{"stars": "5", "review_body": "Bright.", "review_title": "Lamp"}\n'


def lines(folder, options=None):
    files = find_sources(str(folder), {"all": "**"})
    return describe(decide_layouts(files, options or ReadOptions()))


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        (
            MARC,
            ReadOptions(columns={"title": None}),
            "JSON lines: label `stars` (1 to 5), title -, text `review_body`",
        ),
        (b"__label__1 a\n__label__0 b\n", ReadOptions(), "fastText: label (0 and 1)"),
        (b"1,a,b\n2,c,d\n", ReadOptions(), "CSV without a header: label (1 and 2), title, text"),
        (
            parquet_bytes({"label": ["pos", "neg"], "text": ["a", "b"]}),
            ReadOptions(),
            "Parquet: label `label` (words), title -, text `text`",
        ),
        (
            b"rating,title,text\n1,a,b\n",
            ReadOptions(labels="optional"),
            "CSV: title `title`, text `text`",
        ),
        (b"__label__1 a\n", ReadOptions(labels="optional"), "lines of text"),
        (b"\n", ReadOptions(), "empty"),
    ],
)
def test_the_format_the_columns_and_the_scale_are_shown(tmp_path, content, options, line):
    write(tmp_path, "file.txt", content)
    assert lines(tmp_path, options) == [line]


def test_files_that_are_read_in_different_ways_are_counted(tmp_path):
    write(tmp_path, "one.txt", "__label__1 a\n")
    for name in "ab":
        write(tmp_path, f"{name}.csv", f"rating,title,text\n1,{name},x\n")
    stars = "label `rating` (1 to 5), title `title`"
    assert lines(tmp_path) == [
        f"CSV: {stars}, text `text` (2 files)",
        "fastText: label (1 and 2) (1 file)",
    ]
