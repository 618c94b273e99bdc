"""CSV files with escapes by backslashes, as Spark, databases and Python write them."""

import csv
import io

import pytest

from preprocessing.reading.layouts import describe
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import detect_format, read, reasons, write

TEXTS = [
    'He said "it works", and left',
    'a 24" screen',
    '"quoted"',
    "C:\\temp\\new, on a disk",
    "ends with a backslash\\",
    "two\nlines",
    "a tab\tinside",
    "semicolons; and | pipes",
    "plain",
]


def records_of(texts):
    return [(n % 2 + 1, text, f"note {n}") for n, text in enumerate(texts)]


def read_texts(path, **options):
    found = read(path, ReadOptions(columns={"title": None}, **options))
    assert set(reasons(found)) == {"Review"}
    return [(review.label, review.text) for review in found]


def expected(texts):
    return [(label - 1, text) for label, text, _ in records_of(texts)]


def written(texts, **dialect):
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n", **dialect)
    rows.writerows([("label", "text", "note"), *records_of(texts)])
    return out.getvalue()


@pytest.mark.parametrize("reads_labels", [True, False])
@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONE])
def test_quotes_behind_backslashes_are_read_as_python_writes_them(
    folder, separator, quoting, reads_labels
):
    data = written(TEXTS, delimiter=separator, quoting=quoting, doublequote=False, escapechar="\\")
    path = write(folder, "escaped.csv", data)
    found = read_texts(path, reads_labels=reads_labels)
    assert [text for _, text in found] == TEXTS
    assert not reads_labels or found == expected(TEXTS)
    options = ReadOptions(reads_labels=reads_labels)
    [way] = describe([detect_format(path, options)])
    assert "with backslashes before special characters" in way


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_backslash_before_another_letter_is_a_character_of_spark(folder, separator):
    # Spark quotes only fields with quotes and separators, and escapes only the quotes.
    lines = ["label,text,note", r"1,C:\temp\new,a", r'2,"a \"good\" one, really",b', r"1,end\,c"]
    data = "\n".join(line.replace(",", separator, 1).replace(",", separator) for line in lines)
    found = read_texts(write(folder, "spark.csv", data))
    good = f'a "good" one{separator} really'
    assert found == [(0, r"C:\temp\new"), (1, good), (0, "end\\")]


@pytest.mark.parametrize("separator", ["\t", "|"])
@pytest.mark.parametrize("texts", [TEXTS, [text for text in TEXTS if '"' not in text]])
def test_escapes_of_line_breaks_are_read_as_databases_write_them(folder, separator, texts):
    """As `mysql --batch`, `COPY ... TO` of PostgreSQL, Miller and `@tsv` of jq do."""
    names = {"\\": r"\\", "\n": r"\n", "\t": r"\t", "|": r"\|"}
    if separator == "\t":
        names.pop("|")
    escapes = str.maketrans(names)
    rows = [
        ("label", "text", "note"),
        *((n, text.translate(escapes), note) for n, text, note in records_of(texts)),
    ]
    data = "".join(separator.join(map(str, row)) + "\n" for row in rows)
    assert read_texts(write(folder, "table.tsv", data)) == expected(texts)


@pytest.mark.parametrize(
    "texts",
    [
        [r"C:\new\text", r"a \d regular expression", "plain"],
        [r"C:\new", "C:\\", "plain"],
        [r"good\bad", r"w\friends", "plain"],
        [r'ends with "a backslash\"', "C:\\", 'a "quoted" word'],
        ["C:\\", 'a "quoted" word, and more', "plain"],
    ],
)
@pytest.mark.parametrize("separator", [",", "\t"])
def test_backslashes_of_other_files_are_characters(folder, texts, separator):
    data = written(texts, delimiter=separator)
    assert read_texts(write(folder, "plain.csv", data)) == expected(texts)


@pytest.mark.parametrize("enclosed", [True, False])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_escaped_separators_and_line_breaks_are_read_as_mysql_writes_them(
    folder, separator, enclosed
):
    """As `SELECT ... INTO OUTFILE` does, with `OPTIONALLY ENCLOSED BY '"'` or without."""
    special = ["\\", "\n", '"' if enclosed else separator]
    escapes = str.maketrans({char: f"\\{char}" for char in special})
    # Without the marks, a text in quotation marks is a quoted field.
    texts = TEXTS if enclosed else [text for text in TEXTS if text != '"quoted"']
    rows = [("label", "text", "note"), *records_of(texts)]
    mark = '"' if enclosed else ""
    data = "".join(
        separator.join(f"{mark}{str(one).translate(escapes)}{mark}" for one in row) + "\n"
        for row in rows
    )
    assert read_texts(write(folder, "outfile.csv", data)) == expected(texts)


@pytest.mark.parametrize(("separator", "other"), [(",", ";"), ("|", "\t"), ("\t", "|")])
@pytest.mark.parametrize(
    "texts",
    [
        ["C:\\", r"a backslash \SEPARATOR within", "plain"],
        ["C:\\", "a line\\\nand another", "plain"],
        [r"C:\temp\new", "a OTHER b", "plain"],
        [r"C:\temp\new", r"a \SEPARATOR b", "plain"],
    ],
)
def test_a_file_with_all_texts_in_quotation_marks_is_read_with_quoting(
    folder, texts, separator, other
):
    texts = [text.replace("SEPARATOR", separator).replace("OTHER", other) for text in texts]
    data = written(texts, delimiter=separator, quoting=csv.QUOTE_NONNUMERIC)
    assert read_texts(write(folder, "quoted.csv", data)) == expected(texts)


def test_two_backslashes_and_n_are_no_line_break_in_a_file_without_a_header(folder):
    texts = [r'a folder "C:\new"', 'a "line"\nand another', "plain"]
    rows = [(n % 2 + 1, text) for n, text in enumerate(texts)]
    out = io.StringIO()
    csv.writer(out, doublequote=False, escapechar="\\", quoting=csv.QUOTE_ALL).writerows(rows)
    found = read(write(folder, "escaped.csv", out.getvalue().replace("\na", r"\na")))
    assert [review.text for review in found] == texts
