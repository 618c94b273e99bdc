"""CSV files of which nearly all records have another number of fields than the header."""

import csv
import io
import re
import subprocess

import pytest

from core.errors import InputError
from preprocessing.reading.detect import inspect
from preprocessing.reading.pieces import MAX_LINE_BYTES
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import COMPRESS, Review, read, write

NAMES = ("rating", "title", "text")
RECORDS = [(n % 2 * 4 + 1, f"title {n}", f'text {n}, "quoted"\nline') for n in range(30)]
PLAIN = [(n % 2 * 4 + 1, f"title {n}", f"text {n}") for n in range(30)]


def lines(rows, separator=",", **options):
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, **options).writerows(rows)
    return stream.getvalue()


def twice(rows):
    return lines([[line] for line in lines(rows, lineterminator="\n").splitlines()])


def with_row_names(rows, first=1):
    return [(str(number), *row) for number, row in enumerate(rows, first)]


WRONG = {
    "row names": (
        lines([NAMES, *with_row_names(RECORDS)]),
        "has a header with 3 names, and every record has 4 fields, because each record begins with "
        "the name of its row",
    ),
    "names of rows that are no numbers": (
        lines([NAMES, *[(f"row {n}", *RECORDS[n]) for n in range(30)]]),
        "because each record begins with the name of its row",
    ),
    "trailing separator": (
        lines([NAMES, *[(*row, "") for row in RECORDS]]),
        "and every record has 4 fields, because each record ends with a separator",
    ),
    "trailing tab": (
        lines([NAMES, *[(*row, "") for row in PLAIN]], "\t"),
        "because each record ends with a separator",
    ),
    "trailing separator in the header": (
        lines([(*NAMES, ""), *RECORDS]),
        "has a header with 4 names, and every record has 3 fields, because the header ends with a "
        "separator",
    ),
    "other separator": (
        lines([NAMES], ";") + lines(RECORDS),
        "separates the 3 names of its header with semicolons, and the fields of its records with "
        "commas",
    ),
    "other separator, reversed": (
        lines([NAMES]) + lines(RECORDS, ";"),
        "separates the 3 names of its header with commas, and the fields of its records with "
        "semicolons",
    ),
    "tabs": (lines([NAMES]) + lines(PLAIN, "\t"), "of its records with tabs"),
    "exported twice": (twice([NAMES, *PLAIN]), "the whole of each record in quotation marks"),
    "records in quotation marks": (
        lines([NAMES]) + twice(PLAIN),
        "the whole of each record in quotation marks",
    ),
    "a few others": (
        lines([NAMES, *with_row_names(RECORDS), (1, "a", "b"), (1, "a", "b")]),
        "and nearly every record has 4 fields",
    ),
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("case", WRONG)
def test_the_command_in_the_message_mends_the_file(tmp_path, case, suffix):
    content, problem = WRONG[case]
    path = write(tmp_path, f"a.csv{suffix}", COMPRESS[suffix](content.encode()))
    for options in (ReadOptions(), ReadOptions(reads_labels=False)):
        with pytest.raises(InputError) as error:
            inspect(path, options)
        message = str(error.value)
        assert message.startswith(f"{path} has ") or message.startswith(f"{path} separates ")
        assert problem in message and "\n" not in message
        assert message.endswith("`, and read only the new file")
    [command] = re.findall("`(.*)`", message)
    new = tmp_path / "new.csv"
    command = re.sub(r"\bFILE\b", path, command).replace("NEW_FILE", str(new))
    subprocess.run(command, shell=True, check=True)
    texts = [record.text for record in read(str(new)) if isinstance(record, Review)]
    rows = RECORDS if "quoted" in content else PLAIN
    assert texts[:30] == [f"{title}: {text}" for _, title, text in rows]


def test_a_first_record_that_is_too_long_is_named(tmp_path):
    text = "a line\n" * (MAX_LINE_BYTES // 7 + 1)
    path = write(tmp_path, "a.csv", lines([NAMES, (5, "t", text), *RECORDS]))
    with pytest.raises(InputError, match=r"a quotation mark in line 2, the first record, that is"):
        inspect(path, ReadOptions())


def test_without_a_known_cause_the_numbers_are_named(tmp_path):
    rows = [(*row, "more") for row in RECORDS]
    path = write(tmp_path, "a.csv", lines([NAMES, *rows]))
    with pytest.raises(InputError, match=r"and every record has 4 fields: write a header with a n"):
        inspect(path, ReadOptions())
    rows = [(1, f"'text {n}", f"more {n}'") for n in range(30)]
    path = write(tmp_path, "a.csv", lines([("rating", "text"), *rows]))
    with pytest.raises(InputError, match=r"contains the separator, this field in quotation marks"):
        inspect(path, ReadOptions())
    # The quotation mark may be a character like any other.
    names = ("rating", 'the "shop"', "text")
    path = write(tmp_path, "b.csv", lines([names, *with_row_names(RECORDS)]))
    with pytest.raises(InputError, match=r"a name to the header for it, and read only the new f"):
        inspect(path, ReadOptions())


@pytest.mark.parametrize(
    "rows",
    [
        [NAMES, *RECORDS, *with_row_names(RECORDS)],
        [NAMES, *with_row_names(RECORDS[:1])],
        [NAMES, *RECORDS[:2], ("stars", "text"), *[(row[0], row[2]) for row in RECORDS]],
        [NAMES],
        [("rating", "text"), *[(1, f"{n},{n}") for n in range(30)]],
    ],
)
def test_other_files_are_read(tmp_path, rows):
    layout = inspect(write(tmp_path, "a.csv", lines(rows)), ReadOptions()).layout
    assert layout.header == rows[0]


def test_a_text_with_commas_in_each_line_is_no_file_that_was_exported_twice(tmp_path):
    path = write(tmp_path, "a.csv", lines([("text",), *[(f"a, {n}",) for n in range(30)]]))
    assert inspect(path, ReadOptions(reads_labels=False)).layout.header == ("text",)
