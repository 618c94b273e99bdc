"""What the first records of a file show: texts in the notation of a program, and twin columns."""

import subprocess

import pytest

from core.errors import InputError
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    as_file,
    csv_text,
    detect_format,
    got,
    one_line,
    read,
    write,
)

OPTIONS = (ReadOptions(), ReadOptions(reads_labels=False))
TEXTS = [f'It\'s the {n}th phone, and "fine"' for n in range(20)]
STARS = [n % 2 * 4 + 1 for n in range(20)]


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        (lambda text: repr(text.encode()), "are in the notation of Python's bytes"),
        (lambda text: f"__label__2 {text}", "begin with labels of fastText"),
        (lambda text: str([text]), "are lists"),
        (lambda text: f'="{text}"', "are formulas of a spreadsheet"),
        (lambda text: f'\t"{text}"', "have white space before their quotation marks"),
        (lambda text: f'\u00a0"{text}" ', "have white space before their quotation marks"),
    ],
)
def test_texts_in_the_notation_of_a_program_are_named(folder, form, problem):
    rows = [("label", "text"), *zip(STARS, map(form, TEXTS), strict=True)]
    path = write(folder, "notation.csv", csv_text(rows))
    for options in OPTIONS:
        with pytest.raises(InputError) as error:
            read(path, options)
        one_line(error, f"{path}: the texts in the column `text` {problem}")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("quote", ["'", "`"])
def test_another_quotation_mark_is_named_with_a_command(folder, quote, separator):
    texts = [f"It {'works' if n % 2 else f'works{separator} really'}: {n}" for n in range(20)]
    rows = zip(STARS, texts, strict=True)
    lines = [f"{stars}{separator}{quote}{text}{quote}\n" for stars, text in rows]
    path = write(folder, "quoted.csv", f"rating{separator}text\n{''.join(lines)}")
    for options in OPTIONS:
        with pytest.raises(InputError, match=r"are within (single|back)") as error:
            read(path, options)
    command = str(error.value).split("such as with `")[1].split("`")[0]
    command = command.replace("NEW_FILE", "usual.csv").replace("FILE", "quoted.csv")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    found = got(read(str(folder / "usual.csv")))
    assert found == [(stars // 4, text) for stars, text in zip(STARS, texts, strict=True)]


def test_quotation_marks_of_texts_stay(folder):
    texts = [f"\u201cQuote number {n}\u201d" if n % 3 else f"'quoted' {n}" for n in range(20)]
    rows = [("rating", "text"), *zip(STARS, texts, strict=True)]
    assert [text for _, text in got(read(write(folder, "q.csv", csv_text(rows))))] == texts


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("role", "name"), [("label", "Rating"), ("title", "TITLE"), ("text", "Text")]
)
def test_columns_whose_names_differ_in_case_are_named_if_both_have_values(folder, kind, role, name):
    columns = {"rating": STARS, "title": [f"t{n}" for n in range(20)], "text": TEXTS}
    path = write(folder, f"same.{kind}", as_file(kind, {**columns, name: columns[name.lower()]}))
    assert all(text.endswith(own) for (_, text), own in zip(got(read(path)), TEXTS, strict=True))
    other = [6 - stars for stars in STARS] if role == "label" else [f"other {n}" for n in range(20)]
    path = write(folder, f"twins.{kind}", as_file(kind, {**columns, name: other}))
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, f"{path} has the columns `{name.lower()}` and `{name}`", f"data.columns.{role}")
    for chosen in (name, name.lower()):
        layout = detect_format(path, ReadOptions(columns={role: chosen}))
        assert chosen in layout.columns[:3]


def test_the_twin_of_a_label_that_is_not_read_does_not_matter(folder):
    columns = {"rating": STARS, "Rating": [6 - stars for stars in STARS], "text": TEXTS}
    path = write(folder, "twins.csv", as_file("csv", columns))
    found = got(read(path, ReadOptions(reads_labels=False)))
    assert [text for _, text in found] == TEXTS
