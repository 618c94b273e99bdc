"""CSV files with a title or other lines before the header."""

import re
import subprocess

import pytest

from core.errors import InputError
from preprocessing.reading.look import read_table
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    NEEDS_BZCAT,
    detect_format,
    one_line,
    read,
    reasons,
    write,
)

HEADER = "rating,text,id"
ROWS = "".join(f'{n % 5 + 1},"a text, of number {n}",x{n}\n' for n in range(30))
BEFORE = {
    "a title": "Export of reviews 2026\n",
    "a title and a blank line": "Export of reviews 2026\n\n",
    "values of the export": "Report,Reviews\nGenerated,2026-11-01\n,,\n",
    "a comment": "# exported by a shop, version 2\n",
    "a title in the first cell": "Export of reviews,,\n",
    "a title of two lines": '"Export\nof reviews"\n',
}


@pytest.mark.parametrize("name", ["a.csv", "reviews.data"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("before", BEFORE)
def test_the_line_of_a_late_header_is_named_with_a_command_that_works(
    tmp_path, before, separator, name
):
    text = BEFORE[before] + HEADER + "\n" + ROWS.replace("text, of", "text of")
    text = text.replace(",", separator)
    path = write(tmp_path, name, text)
    line = text.split(HEADER.replace(",", separator))[0].count("\n") + 1
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, path, f"its header, which is in line {line}: rating, text, id")
    assert read_table(path, ReadOptions()) is None
    [command] = re.findall("`(tail .*)`", str(error.value))
    new = tmp_path / "new.csv"
    command = command.replace("NEW_FILE", str(new)).replace(" FILE", f" {path}")
    subprocess.run(command, shell=True, check=True)
    assert set(reasons(read(str(new)))) == {"Review", "Neutral"}


@pytest.mark.parametrize(
    ("suffix", "program"),
    [(".gz", "zcat"), pytest.param(".bz2", "bzcat", marks=NEEDS_BZCAT)],
)
def test_the_command_for_a_compressed_file_reads_its_content(tmp_path, suffix, program):
    text = f"Export of reviews\n\n{HEADER}\n{ROWS}"
    path = write(tmp_path, f"a.csv{suffix}", COMPRESS[suffix](text.encode()))
    with pytest.raises(InputError) as error:
        detect_format(path)
    command = f"{program} FILE | tail -n +3 > NEW_FILE"
    one_line(error, path, "its header, which is in line 3", f"`{command}`")
    new = tmp_path / "new.csv"
    command = command.replace("NEW_FILE", str(new)).replace(" FILE", f" {path}")
    subprocess.run(command, shell=True, check=True)
    assert new.read_text() == f"{HEADER}\n{ROWS}"


def test_names_that_are_unknown_are_a_late_header_too(tmp_path):
    path = write(tmp_path, "a.csv", "Export\nmine,body,id\n" + ROWS)
    for options in (ReadOptions(), ReadOptions(columns={"label": "mine", "text": "body"})):
        with pytest.raises(InputError, match="a line before its header, which is in line 2: mine"):
            detect_format(path, options)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a,b,c\n" + ROWS, id="unknown names"),
        pytest.param("Export\n" + ROWS, id="a title and no header"),
        pytest.param(f"Export\n{HEADER}\nx,y\n" + ROWS, id="records of different widths"),
        pytest.param("Export\n", id="a title alone"),
        pytest.param(
            "nr;topic;body\n" + "0;refund;please, my money\n" * 9, id="a comma in each text"
        ),
    ],
)
def test_what_is_no_late_header(tmp_path, text):
    with pytest.raises(InputError) as error:
        detect_format(write(tmp_path, "a.csv", text))
    assert "before its header" not in str(error.value)


def test_a_header_with_another_separator_is_no_line_before_a_table(tmp_path):
    """The command for a line before a table would remove the header and a review."""
    rows = "".join(f"{1 + n % 5}^title {n}^Great phone {n}, and cheap.\n" for n in range(9))
    path = write(tmp_path, "a.csv", f"rating^title^text\n{rows}")
    with pytest.raises(InputError, match=r"a\.csv separates its columns with `\^`"):
        detect_format(path)


@pytest.mark.parametrize("header", ["rating,text", '"rating";"text"'])
def test_a_byte_order_mark_that_became_letters_is_named(tmp_path, header):
    path = write(tmp_path, "a.csv", f"\u00ef\u00bb\u00bf{header}\n5,good\n1,bad\n")
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, f"{path} begins with \u00ef\u00bb\u00bf, a byte order mark", "as UTF-8")


def test_an_invisible_character_behind_a_column_without_a_name_is_named(tmp_path):
    path = write(tmp_path, "a.csv", ",\ufeffrating,text\n0,5,good\n1,1,bad\n")
    with pytest.raises(InputError, match=r"has the invisible character \\ufeff in its header"):
        detect_format(path)


@pytest.mark.parametrize("mark", ["\x01", "\x1f"])
def test_records_that_a_control_character_separates_are_named(tmp_path, mark):
    path = write(tmp_path, "000000_0", "".join(f"{n}{mark}text {n}\n" for n in range(1, 6)))
    with pytest.raises(InputError) as error:
        detect_format(path, ReadOptions(format="csv"))
    one_line(error, f"{path} has no header, and separates its columns with `\\x{ord(mark):02x}`")


def test_an_invisible_character_in_a_header_is_named(tmp_path):
    path = write(tmp_path, "a.csv", f"\u200brating,title,text\n{ROWS}")
    with pytest.raises(InputError, match=r"has the invisible character \\u200b in its header"):
        detect_format(path)


def test_a_sentence_is_no_late_header(tmp_path):
    rows = "".join(f"{1 + n % 5}   Great phone {n}, and it is cheap.\n" for n in range(9))
    path = write(tmp_path, "a.txt", f"rating   text\n{rows}")
    with pytest.raises(InputError) as error:
        detect_format(path)
    assert "before its header" not in str(error.value)


def test_the_names_in_a_survey_may_be_sentences(tmp_path):
    names = "Please rate our service.,Please describe what you bought."
    rows = "".join(f"{1 + n % 5},Great phone {n} and it is cheap.\n" for n in range(9))
    path = write(tmp_path, "a.csv", f"{names}\n{rows}")
    with pytest.raises(InputError, match=r"columns are Please rate our service\., Please"):
        detect_format(path)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_first_record_whose_label_others_repeat_is_no_header(tmp_path, separator):
    """As in the emotions of Saravia et al., whose texts end without a full stop."""
    labels = ("sadness", "joy", "sadness", "anger")
    rows = [f"i feel like number {n}{separator}{labels[n % 4]}\n" for n in range(40)]
    path = write(tmp_path, "train.txt", "".join(rows))
    with pytest.raises(InputError) as error:
        detect_format(path, ReadOptions(task="each"))
    one_line(error, f"{path} has no header with the names of its columns (2)")
    command = str(error.value).split("`")[1]
    new = tmp_path / "new.txt"
    command = command.replace("NEW_FILE", str(new)).replace(" FILE", f" {path}")
    subprocess.run(command, shell=True, check=True)
    assert new.read_text() == f"text{separator}label\n" + "".join(rows)


def test_numbers_behind_the_texts_that_repeat_are_labels(tmp_path):
    rows = [f"一个新闻标题 {n}\t{n % 12}\n" for n in range(40)]
    with pytest.raises(InputError) as error:
        detect_format(write(tmp_path, "dev.txt", "".join(rows)), ReadOptions(task="each"))
    one_line(error, r"(printf 'text\tlabel\n'; cat)")


def test_a_header_again_is_no_label_that_repeats(tmp_path):
    header, rows = "nr,message,team\n", "".join(f"{n},a text {n},x\n" for n in range(9))
    table = read_table(write(tmp_path, "a.csv", header + rows + header + rows), ReadOptions())
    assert table and list(table.names) == ["nr", "message", "team"]


def test_a_header_whose_names_are_the_answers_of_a_survey_is_no_label_that_repeats(tmp_path):
    """Programs for surveys write the name of an answer into its column if it was chosen."""
    rows = "".join(f"{'Price' if n % 2 else ''},a remark {n},{n % 5}\n" for n in range(20))
    path = write(tmp_path, "a.csv", f"Price,What else,How likely\n{rows}")
    with pytest.raises(InputError, match="its columns are Price, What else, How likely"):
        detect_format(path)
