"""CSV files without a header beside one with a header, as `split -l` writes them."""

import csv
import re
import subprocess
from dataclasses import replace

import pytest

from core.errors import InputError
from preprocessing.reading.files import find_sources
from preprocessing.reading.labels import CollectedLabels
from preprocessing.reading.layouts import decide_layouts, describe
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import COMPRESS, POOL, write

EACH = ReadOptions(task="each", classes=())
OPTIONAL = ReadOptions(reads_labels=False)


def rows(template, first, number=30, labels="1245"):
    """Return lines with a label, a number and the words title, text and date."""
    return "".join(
        template.format(l=labels[n % len(labels)], n=n) + "\n" for n in range(first, first + number)
    )


def layouts_of(folder, options=None):
    files = find_sources(str(folder), {"all": "**"})
    return [file.path for file in files], decide_layouts(files, options or ReadOptions())


def texts(folder, options=None):
    found = []
    for path, layout in zip(*layouts_of(folder, options), strict=True):
        collected = CollectedLabels() if layout.keeps_case else None
        for piece in cut_file(path, replace(layout, collected=collected)):
            batches = list(read_batches(piece, POOL))
            assert not any(batch.rejected for batch in batches)
            found += [text.decode() for batch in batches for text in batch.texts]
    return found


PARTS = {
    "rating,text,title": ("{l},text {n},title {n}", "title {}: text {}"),
    "rating,review,date": ("{l},review {n},2026-01-01", "review {1}"),
    "rating\ttext\ttitle": ("{l}\ttext {n}\ttitle {n}", "title {}: text {}"),
    "rating;text;title": ("{l};text {n};title {n}", "title {}: text {}"),
    "title,text,rating": ("title {n},text {n},{l}", "title {}: text {}"),
    "id,text,rating,title,date": ("{n},text {n},{l},title {n},2026-01-01", "title {}: text {}"),
    "text,label": ("text {n},{l}", "text {1}"),
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("options", [ReadOptions(), OPTIONAL, EACH])
@pytest.mark.parametrize("header", PARTS)
def test_the_parts_of_a_file_share_its_header(tmp_path, header, options, suffix):
    template, text = PARTS[header]
    labels = "ab" if options is EACH else "51"
    for number, name in enumerate(["xaa", "xab", "xac"]):
        part = rows(template, 30 * number, labels=labels[: 1 + number % 2])
        content = f"{header}\n{part}" if name == "xaa" else part
        write(tmp_path, name + suffix, COMPRESS[suffix](content.encode()))
    assert texts(tmp_path, options) == [text.format(n, n) for n in range(90)]
    _, layouts = layouts_of(tmp_path, options)
    lines = describe(layouts)
    assert len(lines) == 2 and lines[0].endswith(" (2 files)")
    assert lines[0].replace(f" with the header of xaa{suffix}", "") == lines[1].replace(
        "(1 file)", "(2 files)"
    )


def test_a_label_of_the_class_that_only_a_later_part_has_is_one(tmp_path):
    write(tmp_path, "xaa", "text,topic\n" + rows("text {n},{l}", 0, labels=["refund"]))
    write(tmp_path, "xab", rows("text {n},{l}", 30, labels=["price", "delivery"]))
    options = ReadOptions(task="each", classes=(), columns={"label": "topic"})
    assert texts(tmp_path, options) == [f"text {n}" for n in range(60)]


def test_labels_of_a_settings_mapping_are_labels(tmp_path):
    write(tmp_path, "xaa", "text,label\n" + rows("text {n},{l}", 0, labels=["good"]))
    write(tmp_path, "xab", rows("text {n},{l}", 30, labels=["bad"]))
    options = ReadOptions(label_map={"good": 1, "bad": 0})
    assert len(texts(tmp_path, options)) == 60


def test_a_header_in_a_part_without_its_own_is_a_repeated_one(tmp_path):
    write(tmp_path, "xaa", "rating,text,title\n" + rows("{l},text {n},title {n}", 0))
    part = rows("{l},text {n},title {n}", 30) + "rating,title,text\n4,a title,a text\n"
    write(tmp_path, "xab", part)
    (_, path), (_, layout) = layouts_of(tmp_path)
    [piece] = cut_file(path, layout)
    [batch] = read_batches(piece, POOL)
    assert [line.reason for line in batch.rejected] == ["repeated_header"]
    assert batch.texts[-1] == b"a title: a text" and len(batch.texts) == 31


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("title,text,rating\n{n},text {n},{l}", ReadOptions()),
        ("title,text,rating\n{n},text {n},{l}", OPTIONAL),
        ("id,text,title\n{n},text {n},title", OPTIONAL),
    ],
)
def test_other_columns_are_an_error_that_names_both_files(tmp_path, header, options):
    names, template = header.split("\n")
    write(tmp_path, "good.csv", f"{names}\n" + rows(template, 0))
    write(tmp_path, "part.csv", rows("{l},title {n},text {n}", 30, labels="01"))
    with pytest.raises(InputError) as error:
        layouts_of(tmp_path, options)
    message = str(error.value)
    assert message.startswith(
        f"{tmp_path}/part.csv has no header, and its 3 columns are not those of the header "
        f"of {tmp_path}/good.csv, {', '.join(names.split(','))}, "
    )
    assert r"`(printf 'label,title,text\n'; cat) < FILE > NEW_FILE`" in message
    assert "\n" not in message


@pytest.mark.parametrize("separator", [",", "\t"])
def test_the_command_writes_the_header_whatever_its_names_are(tmp_path, separator):
    """Without labels above 2 the part may be a polarity file."""
    names = ["rating", "the shop's name, \\tin %\tGröße \x01" + 200 * "x", "text"]
    for name, labels in (("good.csv", "1245"), ("part.csv", "12")):
        with (tmp_path / name).open("w", newline="") as file:
            lines = csv.writer(file, delimiter=separator)
            lines.writerows([names] * (name == "good.csv"))
            for n in range(30):
                lines.writerow([labels[n % len(labels)], "a shop", f"text {name} {n}"])
    with pytest.raises(InputError, match="is not certain beside the stars of") as error:
        layouts_of(tmp_path)
    command = re.search("`(.*FILE)`", str(error.value))[1]
    command = command.replace("< FILE > NEW_FILE", "< part.csv > new.csv")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    (tmp_path / "part.csv").unlink()
    assert len(texts(tmp_path)) == 60
    with (tmp_path / "new.csv").open(newline="") as file:
        assert next(csv.reader(file, delimiter=separator)) == names


@pytest.mark.parametrize(
    ("header", "options"), [("text,rating", ReadOptions()), ("text,label", EACH)]
)
def test_two_columns_without_a_header_are_a_label_and_a_text(tmp_path, header, options):
    # 0 is no number of stars, and no label of the other file.
    write(tmp_path, "good.csv", f"{header}\n" + rows("text {n},{l}", 0))
    write(tmp_path, "part.csv", rows("{l},text {n}", 30, labels="01"))
    _, [_, part] = layouts_of(tmp_path, options)
    assert part.header is None


def test_the_parts_of_a_table_with_many_classes_share_its_header(tmp_path):
    lines = [f"text {n},class {n * 37 % 77}\n" for n in range(800)]
    for part in range(4):
        header = "text,label\n" if part == 0 else ""
        write(tmp_path, f"part-a{part}", header + "".join(lines[part * 200 : part * 200 + 200]))
    _, layouts = layouts_of(tmp_path, EACH)
    assert [layout.header for layout in layouts] == 4 * [("text", "label")]


def test_a_file_with_unknown_columns_has_no_header_of_another_file_without_labels(tmp_path):
    write(tmp_path, "a.csv", "id,text\n" + rows("{n},text {n}", 0))
    write(tmp_path, "b.csv", "remark,user\n" + rows("text {n},user {n}", 30))
    with pytest.raises(InputError, match=r"b\.csv has no columns with known names"):
        layouts_of(tmp_path, OPTIONAL)


def test_two_headers_that_fit_are_an_error(tmp_path):
    write(tmp_path, "a.csv", "rating,text,title\n" + rows("{l},text {n},title {n}", 0))
    write(tmp_path, "b.csv", "rating,title,text\n" + rows("{l},title {n},text {n}", 30))
    write(tmp_path, "c.csv", rows("{l},title {n},text {n}", 60))
    with pytest.raises(InputError, match=r"c\.csv has no header, and the headers of .*a\.csv and "):
        layouts_of(tmp_path)
    write(tmp_path, "c.csv", rows("{l};title {n};text {n}", 60).replace(";", "\t"))
    assert len(texts(tmp_path)) == 90


def test_files_of_other_widths_or_formats_share_nothing(tmp_path):
    write(tmp_path, "a.csv", "rating,text\n" + rows("{l},text {n}", 0))
    write(tmp_path, "b.csv", rows("{l},title {n},text {n}", 30))
    write(tmp_path, "c.txt", rows("__label__{l} title {n}: text {n}", 60, labels="12"))
    assert texts(tmp_path)[30:] == [f"title {n}: text {n}" for n in range(30, 90)]


def test_a_file_that_is_no_part_keeps_its_own_error(tmp_path):
    write(tmp_path, "a.csv", "rating,text,title\n" + rows("{l},text {n},title {n}", 0))
    write(tmp_path, "b.csv", "klasse,beitrag,name\n" + rows("{l},text {n},title {n}", 30))
    with pytest.raises(
        InputError, match=r"b\.csv has no columns with known names: its columns are k"
    ):
        layouts_of(tmp_path)
