"""Decisions for all files of an input together, above all the scale of their labels."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import InputError
from preprocessing.reading import samples
from preprocessing.reading.columns import Columns
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts, describe, input_scale
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    ONE_TWO,
    POOL,
    STARS,
    as_file,
    csv_text,
    detect_format,
    got,
    labels_of,
    one_line,
    read,
    reasons,
    write,
)


def scales(folder, options=None):
    files = find_sources(str(folder), {"all": "*"})
    layouts = decide_layouts(files, options or ReadOptions())
    found = zip(files, layouts, strict=True)
    return {Path(file.path).name: layout.label_scale for file, layout in found}


def content(kind, labels, text="text"):
    texts = [f"{text} {index}" for index in range(len(labels))]
    rows = list(zip(labels, texts, strict=True))
    if kind == "fasttext":
        return "".join(f"__label__{label} {text}\n" for label, text in rows).encode()
    if kind == "headerless":
        return csv_text(rows).encode()
    return as_file(kind, {"label": labels, "text": texts})


@pytest.mark.parametrize("kind", ["fasttext", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("labels", "scale", "read_as"),
    [
        ([0, 1, 1], "0 and 1", [0, 1, 1]),
        ([True, False], "0 and 1", [1, 0]),
        ([1, 2, 2], "1 and 2", [0, 1, 1]),
        (["2.0", "1", "x"], "1 and 2", [1, 0]),
        ([1, 4, 2, 3, 5], "1 to 5", [0, 1, 0, 1]),
        ([5.0], "1 to 5", [1]),
        ([0, 4, 2, 1, 3], "0 to 4", [0, 1, 0, 1]),
        ([-1, 1, 0], "-1 to 1", [0, 1]),
        (["pos", "NEG", "neutral", "9", "0.5"], "words", [1, 0]),
    ],
)
def test_labels_are_on_the_scale_that_has_them(tmp_path, kind, labels, scale, read_as):
    path = write(tmp_path, "a", content(kind, labels))
    assert scales(tmp_path) == {"a": scale}
    assert labels_of(read(path)) == read_as


@pytest.mark.parametrize("kind", ["fasttext", "headerless"])
def test_formats_that_count_from_1_may_have_1_alone(tmp_path, kind):
    assert labels_of(read(write(tmp_path, "a", content(kind, [1, 1])))) == [0, 0]


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([0, 1, 2], "{0: ?, 1: ?, 2: ?}"),
        ([1, 2, 2, 3], "{1: ?, 2: ?, 3: ?}"),
        ([10, 0, 2], "{0: ?, 2: ?, 10: ?}"),
        (["gut", "Übel"], "{gut: ?, übel: ?}"),
    ],
)
def test_labels_of_fasttext_that_fit_no_scale_are_refused(tmp_path, labels, shown):
    path = write(tmp_path, "a.ft.txt", content("fasttext", labels))
    with pytest.raises(InputError) as error:
        scales(tmp_path)
    one_line(error, path, f"data.labels={shown}")
    assert "data.columns" not in str(error.value)  # fastText has no columns


@pytest.mark.parametrize("kind", ["fasttext", "csv", "jsonl"])
def test_the_meaning_of_labels_can_be_set(tmp_path, kind):
    labels = ["Gut", "übel", "gut", "mittel", "positive"]
    path = write(tmp_path, "a", content(kind, labels))
    records = read(path, ReadOptions(label_map={"gut": 1, "übel": 0, "mittel": None}))
    assert labels_of(records) == [1, 0, 1]
    assert reasons(records)[3:] == ["Neutral", "bad_label"]


def test_fasttext_and_files_with_columns_have_scales_of_their_own(tmp_path):
    write(tmp_path, "a.ft.txt", content("fasttext", [1, 2]))
    write(tmp_path, "b.csv", content("csv", [0, 1]))
    write(tmp_path, "c.csv", "rating,text\n1,x\n5,y\n")
    assert scales(tmp_path) == {"a.ft.txt": "1 and 2", "b.csv": "0 and 1", "c.csv": "1 to 5"}


def test_an_empty_file_is_not_called_fasttext_if_columns_are_set(tmp_path):
    write(tmp_path, "reviews.csv", "")
    assert list(scales(tmp_path, ReadOptions(columns={"text": "body"}))) == ["reviews.csv"]


def test_names_of_columns_are_refused_if_every_file_is_fasttext(tmp_path):
    options = ReadOptions(columns={"title": "head"})
    write(tmp_path, "a.ft.txt", content("fasttext", [1, 2]))
    with pytest.raises(InputError) as error:
        scales(tmp_path, options)
    one_line(error, "data.columns.title", "remove the setting")
    scales(tmp_path, replace(options, reads_labels=False))
    write(tmp_path, "z.csv", "head,body,rating,text\na,b,2,c\nd,e,4,f\n")
    scales(tmp_path, options)


@pytest.mark.parametrize("kind", ["csv", "headerless", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("one", "other", "scale"),
    [
        ([1, 2], [4, 5], "1 to 5"),
        ([1, 1], [3, 3], "1 to 5"),
        ([1, 1], [2, 2], "1 and 2"),
        ([1, 1], [0, 0], "0 and 1"),
        (["2"], ["positive", "negative"], "1 and 2"),
    ],
)
def test_sorted_shards_are_read_on_one_scale(tmp_path, kind, one, other, scale):
    write(tmp_path, "a", content(kind, one))
    write(tmp_path, "b", content(kind, other))
    assert scales(tmp_path) == {"a": scale, "b": scale}


@pytest.mark.parametrize("kind", ["csv", "headerless", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("files", "scale"),
    [
        ([[0, 1], [-1, -1]], "0 and 1"),
        ([[0, 1, 1], [0], [-1], [-1]], "0 and 1"),
        ([[0, 4, 1], [-1]], "0 to 4"),
        ([[0, 1], [-1, 0, 1]], "-1 to 1"),
        ([[0, 1], [-1], [-1, 1]], "-1 to 1"),
        ([[1], [0], [-1]], "-1 to 1"),
        ([[1], [-1]], "-1 to 1"),
    ],
)
def test_a_file_of_minus_1_alone_beside_labels_from_0_has_no_labels(tmp_path, kind, files, scale):
    for number, labels in enumerate(files):
        name = f"{number}-test" if set(labels) == {-1} else f"{number}"
        write(tmp_path, name, content(kind, labels, f"text {number}"))
    assert set(scales(tmp_path).values()) == {scale}
    sources = find_sources(str(tmp_path), {"all": "*"})
    for source, layout, labels in zip(
        sources, decide_layouts(sources, ReadOptions()), files, strict=True
    ):
        [batch] = [
            batch for piece in cut_file(source.path, layout) for batch in read_batches(piece, POOL)
        ]
        no_labels = labels.count(-1) if scale != "-1 to 1" else 0
        assert [line.reason for line in batch.rejected] == ["bad_label"] * no_labels
        assert all("marks a missing label" in line.detail for line in batch.rejected)


def test_a_file_of_minus_1_alone_without_a_telling_name_is_an_error(tmp_path):
    write(tmp_path, "a", content("csv", [0, 1]))
    path = write(tmp_path, "b", content("csv", [-1], "text"))
    with pytest.raises(InputError) as error:
        scales(tmp_path)
    one_line(error, path, "which marks a missing label, or is negative on a scale from -1 to 1")
    (tmp_path / "unlabeled").mkdir()
    (tmp_path / "b").rename(tmp_path / "unlabeled" / "b")
    assert set(scales(tmp_path).values()) == {"0 and 1"}


@pytest.mark.parametrize(("one", "other"), [([0, 1], [4, 5]), ([1, 2], [0, 1])])
def test_files_that_contradict_each_other_are_both_named(tmp_path, one, other):
    paths = [
        write(tmp_path, "a", content("csv", one)),
        write(tmp_path, "b", content("jsonl", other)),
    ]
    with pytest.raises(InputError) as error:
        scales(tmp_path)
    shown = ", ".join(map(str, sorted({*one, *other})))
    one_line(error, *paths, "data.labels", f"the labels {shown} is not certain")
    assert len(scales(tmp_path, ReadOptions(label_map=STARS))) == 2


def test_beside_a_column_of_stars_1_and_2_are_ambiguous_and_0_and_1_are_not(tmp_path):
    stars = write(tmp_path, "stars.csv", "rating,text\n1,a\n5,b\n")
    other = write(tmp_path, "b.csv", content("csv", [0, 1]))
    assert scales(tmp_path) == {"b.csv": "0 and 1", "stars.csv": "1 to 5"}
    # These may be parts of one file of ratings, of which only the first part has a header.
    write(tmp_path, "b.csv", content("headerless", [1, 2]))
    with pytest.raises(InputError) as error:
        scales(tmp_path)
    one_line(error, f"{other}: the meaning of the labels 1, 2", f"beside the stars of {stars}")
    write(tmp_path, "b.csv", content("headerless", [1, 2, 4]))
    assert scales(tmp_path) == {"b.csv": "1 to 5", "stars.csv": "1 to 5"}
    write(tmp_path, "b.csv", content("headerless", [1, 2]))
    scales(tmp_path, ReadOptions(label_map=STARS))


SORTED = {
    "1 to 5": [1] * 1_000 + [2] * 500 + [4] * 500 + [5] * 1_000,
    "0 and 1": [1] * 2_900 + [0] * 100,
}


@pytest.fixture
def small_samples(monkeypatch):
    """Reduce the inspected parts of files, so that small files are larger than these parts."""
    monkeypatch.setattr(samples, "_HEAD", 1 << 13)
    monkeypatch.setattr(samples, "_SAMPLE_BYTES", 1 << 12)


@pytest.mark.parametrize("kind", ["csv", "headerless", "jsonl"])
@pytest.mark.parametrize("suffix", ["", ".bz2"])
@pytest.mark.parametrize("scale", SORTED)
def test_the_scale_of_a_sorted_file_whose_head_has_only_1_is_found(
    tmp_path, small_samples, kind, suffix, scale
):
    data = content(kind, SORTED[scale], 'a line break,\nan odd " quote and more than a few words')
    assert len(data) > 1 << 17
    write(tmp_path, "a" + suffix, COMPRESS[suffix](data))
    assert set(scales(tmp_path).values()) == {scale}


@pytest.mark.parametrize("seed", range(3))
def test_lines_inside_the_fields_of_csv_are_not_read_as_labels(tmp_path, small_samples, seed):
    # The noise puts lines into the texts that look like reviews of another scale.
    dice = random.Random(seed)
    noise = ["\n5,no label", '\n"5","no label"', ', "', '"', "\n", "word " * 40, '\n""5"",x\n']
    rows = [
        (dice.choice([0, 1]), "".join(dice.choices(noise, k=dice.randint(1, 8))) + f"{index}.")
        for index in range(1_500)
    ]
    write(tmp_path, "a.csv", csv_text([("label", "text"), *rows]))
    assert scales(tmp_path) == {"a.csv": "0 and 1"}


@pytest.mark.parametrize("kind", ["fasttext", "csv", "headerless", "jsonl"])
def test_a_later_number_of_another_scale_has_a_reason_of_its_own(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(samples, "_HEAD", 1 << 13)
    # Only the head of a gzip file is inspected.
    path = write(tmp_path, "a.gz", COMPRESS[".gz"](content(kind, [1, 2] * 1_000 + [4, "x"])))
    assert scales(tmp_path) == {"a.gz": "1 and 2"}
    assert reasons(read(path))[-2:] == ["label_of_another_scale", "bad_label"]
    configured = read(path, ReadOptions(label_map=ONE_TWO))
    assert reasons(configured)[-2:] == ["bad_label", "bad_label"]
    assert len(labels_of(configured)) == 2_000


def test_all_labels_of_a_parquet_file_are_inspected(tmp_path):
    write(tmp_path, "a", content("parquet", [1, 2] * 1_000 + [3, 4] + [1] * 1_000))
    assert scales(tmp_path) == {"a": "1 to 5"}


def test_a_file_without_reviews_is_named_with_the_remedy(tmp_path):
    write(tmp_path, "a.jsonl", content("jsonl", [0, 1]))
    path = write(tmp_path, "meta_a.jsonl", '{"title": "A lamp", "asin": "B01"}\n')
    with pytest.raises(InputError) as error:
        scales(tmp_path)
    one_line(error, path, "if it contains no texts, move it out of data.input_base")


@pytest.mark.parametrize(
    "first", [{"rating": 5, "text": "a"}, {"rating": 5}, {"text": "a"}, {"other": {}}]
)
def test_json_lines_have_the_keys_that_any_of_the_first_lines_has(tmp_path, first):
    rows = [first] * 30 + [{"rating": 1, "title": "t", "text": "b"}]
    path = write(tmp_path, "keys.jsonl", "\n".join(map(json.dumps, rows)))
    assert detect_format(path, ReadOptions()).columns == Columns("rating", "title", "text")
    assert got(read(path))[30:] == [(0, "t: b")]


# ---- the lines that show how files are read


def lines(folder, options=None):
    files = find_sources(str(folder), {"all": "**"})
    return describe(decide_layouts(files, options or ReadOptions()))


@pytest.mark.parametrize(
    ("content", "options", "line"),
    [
        (
            b'{"stars": "5", "review_body": "Bright.", "review_title": "Lamp"}\n',
            ReadOptions(columns={"title": None}),
            "JSON lines: label `stars` (1 to 5), title -, text `review_body`",
        ),
        (b"__label__1 a\n__label__0 b\n", ReadOptions(), "fastText: label (0 and 1)"),
        (b"1,a,b\n2,c,d\n", ReadOptions(), "CSV without a header: label (1 and 2), title, text"),
        (
            b"1,a,b\n2,c,d\n",
            ReadOptions(reads_labels=False),
            "CSV without a header: label (not read), title, text",
        ),
        (
            b"rating,title,text\n1,a,b\n",
            ReadOptions(reads_labels=False),
            "CSV: title `title`, text `text`",
        ),
        (b"__label__1 a\n", ReadOptions(reads_labels=False), "lines of text"),
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


@pytest.mark.parametrize(
    ("labels", "served", "scale"),
    [
        ([1, 2], "1 to 5", "1 to 5"),
        ([1], "1 to 5", "1 to 5"),
        ([1, 2, 3], "1 to 5", "1 to 5"),
        ([0, 1], "0 to 4", "0 to 4"),
        ([0, 1], "1 to 5", "0 and 1"),
        ([1, 2], "0 and 1", "1 and 2"),
        ([1, 4, 5], "1 and 2", "1 to 5"),
        ([1, 2], "", "1 and 2"),
        (["neg", "pos"], "1 to 5", ""),
    ],
)
def test_labels_that_fit_the_scale_of_the_served_model_have_it(tmp_path, labels, served, scale):
    write(tmp_path, "a.csv", content("csv", labels * 5))
    files = find_sources(str(tmp_path), {"all": "*"})
    assert input_scale(decide_layouts(files, ReadOptions(), served)) == scale


def test_an_input_with_several_scales_or_a_setting_has_none(tmp_path):
    write(tmp_path, "a.csv", content("csv", [1, 2, 3, 4, 5]))
    write(tmp_path, "empty.csv", b"")
    files = find_sources(str(tmp_path), {"all": "*"})
    assert input_scale(decide_layouts(files, ReadOptions())) == "1 to 5"
    assert input_scale(decide_layouts(files, ReadOptions(label_map={"1": 0, "5": 1}))) == ""
    assert input_scale(decide_layouts(files, ReadOptions(task="stars", classes=()))) == ""
    write(tmp_path, "a.txt", content("fasttext", [1, 2], "other"))
    files = find_sources(str(tmp_path), {"all": "*"})
    assert input_scale(decide_layouts(files, ReadOptions())) == ""


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_labels_of_another_column_behind_the_head_have_a_scale_of_their_own(
    tmp_path, monkeypatch, kind
):
    monkeypatch.setattr("preprocessing.reading.samples._HEAD", 1_000)
    stars = [{"rating": n % 2 * 4 + 1, "text": f"stars {n}"} for n in range(100)]
    polarity = [{"label": n % 2, "content": f"polarity {n}"} for n in range(100)]
    if kind == "jsonl":
        content = "".join(json.dumps(row) + "\n" for row in stars + polarity)
    else:
        rows = [f"{row['rating']},{row['text']},,\n" for row in stars]
        rows += [f",,{row['label']},{row['content']}\n" for row in polarity]
        content = "rating,text,label,content\n" + "".join(rows)
    found = read(write(tmp_path, f"both.{kind}", content))
    assert [record.label for record in found] == [0, 1] * 100
