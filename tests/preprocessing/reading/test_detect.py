"""Detection of the format, the columns and the scale of the labels of a file."""

import math
import subprocess
from decimal import Decimal

import pytest

from core.errors import InputError
from pipeline.config import load_config
from pipeline.inputs import read_options
from preprocessing.reading.columns import Columns, Layout, find_columns
from preprocessing.reading.detect import encoding_remedy
from preprocessing.reading.encoding import shown
from preprocessing.reading.formats import csv_records
from preprocessing.reading.labels import NEUTRAL, SCALES, LabelReader
from preprocessing.reading.pieces import MAX_LINE_BYTES
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    NEEDS_BZCAT,
    ONE_TWO,
    ZERO_ONE,
    Review,
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

# ---- columns

CONVENTIONS = [
    ("overall", "summary", "reviewText"),
    ("rating", None, "review"),
    ("rating", "title", "text"),
    ("Score", "Summary", "Text"),
    ("reviews.rating", "reviews.title", "reviews.text"),
    ("star_rating", "review_headline", "review_body"),
    ("label", "title", "content"),
    ("label", None, "text"),
    ("LABEL", "Title", "TEXT"),
]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("label", "title", "text"), CONVENTIONS)
def test_columns_are_found(folder, kind, label, title, text):
    columns = {"id": [7, 8], text: ["a", "b"], "other": ["x", "y"]}
    columns |= {title: ["t", "u"]} if title else {}
    columns |= {label: [1, 5]}
    path = write(folder, "columns", as_file(kind, columns))
    layout = detect_format(path, ReadOptions())
    assert layout.format == kind and layout.columns == Columns(label, title, text)
    texts = ("t: a", "u: b") if title else ("a", "b")
    first = 1 + (kind == "csv")
    assert read(path) == [Review(first, 0, texts[0]), Review(first + 1, 1, texts[1])]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_that_are_set(folder, kind):
    columns = {"given": [1, 5], "rating": [5, 1], "head": ["h", "i"], "text": ["a", "b"]}
    path = write(folder, "configured", as_file(kind, columns | {"title": ["t", "u"]}))
    for options, expect in [
        (ReadOptions(), Columns("rating", "title", "text")),
        (ReadOptions(columns={"label": "given"}), Columns("given", "title", "text")),
        (ReadOptions(columns={"label": "given", "text": "head"}), Columns("given", None, "head")),
        (ReadOptions(columns={"title": None}), Columns("rating", None, "text")),
        (ReadOptions(columns={"title": "head"}), Columns("rating", "head", "text")),
        (ReadOptions(columns={"text": "head"}), Columns("rating", "title", "head")),
    ]:
        assert detect_format(path, options).columns[:3] == expect[:3]
    for setting in ("label", "title", "text"):
        with pytest.raises(InputError) as error:
            read(path, ReadOptions(columns={setting: "Stars"}))
        one_line(error, path, f"data.columns.{setting}", "'Stars'", "given, rating, head, text")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_that_are_not_found(folder, kind):
    path = write(folder, f"unknown.{kind}", as_file(kind, {"a": [1, 5], "b": ["x", "y"]}))
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, path, "data.columns.label", "data.columns.text", "a, b")


@pytest.mark.parametrize(
    ("content", "expect"),
    [
        ('"2","title","text"\n"1","a","b"\n', [(1, "title: text"), (0, "a: b")]),
        ("1,only text\n2,more\n", [(0, "only text"), (1, "more")]),
        ("__label__2,t,b\n", [(1, "t: b")]),
        ("negative,t,b\n", [(0, "t: b")]),
        ('2,"a"b,c\n2,"t\nu",b\n1,t,b\n', ["broken_csv", (1, "t\nu: b"), (0, "t: b")]),
    ],
)
def test_csv_without_a_header(folder, content, expect):
    assert got(read(write(folder, "headerless", content))) == expect


BLANKS = [
    # The header and the records, the header alone, and the records alone have blanks.
    'rating, "title", "text"\n5, "Good, really", "It ""works"", so\nfar"\n1, "Bad", "Broke"\n',
    'rating, "title", "text"\n5,"Good, really","It ""works"", so\nfar"\n1,"Bad","Broke"\n',
    'rating,title,text\n5, "Good, really", "It ""works"", so\nfar"\n1, "Bad", "Broke"\n',
]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_line_of_a_quoted_text_is_no_first_record_with_another_separator(folder, separator):
    rows = [(stars, f'first line\n1, "two" {stars}') for stars in (5, 4, 1)]
    path = write(folder, "quoted.csv", csv_text([("rating", "text"), *rows], separator=separator))
    assert got(read(path)) == [(int(stars > 3), text) for stars, text in rows]
    unknown = write(folder, "own.csv", csv_text([("Nr", "Nachricht"), *rows], separator=separator))
    with pytest.raises(InputError) as error:
        read(unknown)
    one_line(error, "its columns are Nr, Nachricht; set data.columns.label and data.columns.text")


@pytest.mark.parametrize("mark", [";", "\t", " |"])
def test_a_broken_first_line_with_another_separator_is_rejected_alone(folder, mark):
    lines = [f'{label},"Nice, and {label}"' for label in (2, 1, 2)]
    path = write(folder, "headerless.csv", "\n".join([f'1,"so "good"{mark} it broke"', *lines]))
    texts = [(1, "Nice, and 2"), (0, "Nice, and 1"), (1, "Nice, and 2")]
    assert got(read(path)) == ["broken_csv", *texts]


@pytest.mark.parametrize("separator", ",;|\t")
@pytest.mark.parametrize("content", BLANKS)
def test_blanks_before_quotes_are_skipped(folder, content, separator):
    content = content.replace(",", separator)
    path = write(folder, "blanks.csv", content)
    assert got(read(path)) == [
        (1, f'Good{separator} really: It "works"{separator} so\nfar'),
        (0, "Bad: Broke"),
    ]


def test_blanks_before_a_quote_inside_of_a_field_stay(folder):
    rows = [("rating", "text"), *[(5, f' "Great", {n}') for n in range(9)], (1, "  x")]
    found = read(write(folder, "inside.csv", csv_text(rows)))
    assert got(found) == [*[(1, f' "Great", {n}') for n in range(9)], (0, "  x")]
    # One review that quotes with blanks decides nothing for the others.
    lines = "rating,text\n5,  indented\n" + "1,  b\n" * 9 + '5, "x"\n'
    assert got(read(write(folder, "one.csv", lines)))[0] == (1, "  indented")


def test_quotation_marks_stay_in_a_table_without_quoted_fields(folder):
    rows = "".join(f"{n % 2 * 4 + 1}\ta \\t tab {n}\n" for n in range(20))
    path = write(folder, "table.tsv", f'rating\ttext\n{rows}5\t "Great"\n')
    assert not detect_format(path, ReadOptions()).dialect.quoted
    assert got(read(path))[-1] == (1, ' "Great"')


def test_blanks_before_quotes_beside_quotes_behind_backslashes(folder):
    lines = "".join(f'{n}, "Size, {n}", "It is {n}\\" wide, and new"\n' for n in (1, 5, 2, 4))
    path = write(folder, "both.csv", f"rating, title, text\n{lines}")
    found = [f'Size, {n}: It is {n}" wide, and new' for n in (1, 5, 2, 4)]
    assert [record.text for record in read(path)] == found


@pytest.mark.parametrize("rows", ["jsonl", "fasttext"])
def test_a_header_of_csv_above_lines_of_another_format_is_rejected_alone(folder, rows):
    lines = {
        "jsonl": '{{"rating": {0}, "title": "a, b", "text": "t {0}"}}\n',
        "fasttext": "__label__{0} a: b, c, d, t {0}\n",
    }[rows]
    content = "".join(lines.format(n % 2 + (4 if rows == "jsonl" else 1)) for n in range(9))
    path = write(folder, "above", f"rating,title,text\n{content}")
    assert detect_format(path).format == rows
    assert sum(isinstance(record, Review) for record in read(path)) == 9


@pytest.mark.parametrize("number", [1, 40])
@pytest.mark.parametrize("line", ["{}", '{"rating": 1}', "__label__2 from a file"])
def test_a_line_of_a_field_decides_no_format(folder, line, number):
    rows = [(5 - 4 * (n % 2), f"book {n}") for n in range(30)]
    rows[0] = (5, "It shows\n" + f"{line}\n" * number + "as an example")
    path = write(folder, "book.csv", csv_text([("rating", "text"), *rows]))
    assert got(read(path)) == [(int(stars > 3), text) for stars, text in rows]


@pytest.mark.parametrize("separator", ",;")
def test_the_line_of_excel(folder, separator):
    rows = [("id", "rating", "title", "text"), (7, 5, "A, b; c|d\te", 'two\nlines of "x"')]
    data = csv_text([*rows, ("", "", "", ""), (8, 1, "t", "b")], separator=separator)
    path = write(folder, "dialect.txt", f"sep={separator}\r\n{data}")
    assert got(read(path)) == [(1, 'A, b; c|d\te: two\nlines of "x"'), "no_text", (0, "t: b")]


@pytest.mark.parametrize("names", ["rating,text", "title,rating,text", "title,text"])
@pytest.mark.parametrize("again", ["sep=,", '"sep=,"', "\ufeffsep=,"])
def test_the_line_of_excel_in_a_joined_file_is_no_review(folder, monkeypatch, names, again):
    row = names.replace("rating", "1") + "s"
    lines = ["sep=,", names, row, again, names, row]
    path = write(folder, "later.csv", "\n".join(lines))
    for size in range(1, 9):
        monkeypatch.setattr(csv_records, "_READ", size)
        found = read(path, ReadOptions(reads_labels="rating" in names))
        assert reasons(found) == ["Review", "repeated_header", "repeated_header", "Review"]


# Sentiment140, reviews with the label at the end, and files of other orders.
@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("wide.csv", ",".join(map(str, range(7, 107))) + "\n", ["(100)", "7, 8, ", "and 80 more"]),
        (
            "six.csv",
            '"0","1467810369","Mon Apr 06","NO_QUERY","someone","I am, so, sad about it"\n' * 3,
            ["no header", "(6)", "label,column2,column3,column4,column5,text"],
        ),
        (
            "uci.txt",
            "Good phone.\t1\nIt broke, sadly.\t0\nSo so.\t1\n",
            [r"`(printf 'text\tlabel\n'; cat) < FILE"],
        ),
        ("last.csv", '"Good","It works",5\n"Bad","It broke",1\n', ["'title,text,label\\n'"]),
        ("four.csv", "5,Good,It works,B001\n1,Bad,It broke at once,B002\n", ["(4)", "label,"]),
        # The words of labels may be longer than the texts.
        (
            "short.csv",
            "12,positive,ok,9\n13,negative,bad,8\n",
            ["(4)", "column1,label,text,column4"],
        ),
        ("one.csv", "x" * 61 + "\n", ["no header", "(1)"]),
        # The numbers of rows are no labels, and numbers are no texts.
        (
            "rows.csv",
            "".join(f"{n},{n % 2},Text of row {n}\n" for n in range(30)),
            ["(3)", "column1,label,text"],
        ),
        ("scores.csv", "".join(f"{n % 2},0.{n}1\n" for n in range(30)), ["(2)", "label,column2"]),
    ],
)
def test_a_csv_file_without_a_header_is_named(folder, name, content, parts):
    path = write(folder, name, content)
    for options in (ReadOptions(), ReadOptions(columns={"text": "body"})):
        with pytest.raises(InputError) as error:
            read(path, options)
        one_line(error, path, *parts)


@pytest.mark.parametrize("suffix", ["", ".gz", pytest.param(".bz2", marks=NEEDS_BZCAT)])
def test_the_command_of_a_file_without_a_header_makes_it_readable(folder, suffix):
    lines = "Good phone.\t1\nIt broke, sadly.\t0\nSo so.\t1\n"
    path = write(folder, f"uci.txt{suffix}", COMPRESS[suffix](lines.encode()))
    with pytest.raises(InputError) as error:
        read(path)
    command = str(error.value).split("`")[1].replace("NEW_FILE", "new")
    command = command.replace("FILE", f"uci.txt{suffix}")
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert got(read(str(folder / "new"))) == [
        (1, "Good phone."),
        (0, "It broke, sadly."),
        (1, "So so."),
    ]


@pytest.mark.parametrize(
    ("encoding", "header", "command"),
    [
        ("cp1252", "Sterne,Überschrift,Kundenmeinung über das Gerät", "WINDOWS-1252"),
        ("latin-1", "Note,Expérience", "WINDOWS-1252"),
        ("cp1251", "оценка,отзыв", "WINDOWS-1251"),
        ("koi8-r", "оценка,отзыв", "KOI8-R"),
        ("shift_jis", "ひょうか,レビュー", "CP932"),
        ("cp850", "Sterne,Überprüfung für später", "CP850"),
        ("gbk", "评分,用户评论内容", "GB18030"),
        ("cp949", "평가 점수,리뷰 내용의 요약", "CP949"),
        ("cp1254", "puan,müşteri görüşü", "WINDOWS-1254"),
        ("cp1250", "ocena,ocena łączna i treść", "WINDOWS-1250"),
    ],
)
def test_the_encoding_of_a_header_is_named(folder, encoding, header, command):
    path = write(folder, "header.csv", f"{header}\n5,gut\n1,schlecht\n".encode(encoding))
    *_, text = header.split(",")
    for options in (ReadOptions(), ReadOptions(columns={"text": text})):
        with pytest.raises(InputError) as error:
            read(path, options)
        one_line(
            error, path, f"looks like {shown(command)}: convert it with `amazon-reviews data conv"
        )


GOOGLE_PLAY = (
    "Package Name,App Version Code,App Version Name,Reviewer Language,Device,Review Submit Date "
    "and Time,Review Submit Millis Since Epoch,Review Last Update Date and Time,Review Last Update "
    "Millis Since Epoch,Star Rating,Review Title,Review Text,Developer Reply Date and Time,"
    "Developer Reply Millis Since Epoch,Developer Reply Text,Review Link"
)


def test_a_long_list_of_columns_has_the_likely_ones_and_the_number_of_the_others(folder):
    unknown = GOOGLE_PLAY.replace("Review Text", "Customer Text")
    path = write(folder, "play.csv", f"{unknown}\n" + ",".join("x" * 16) + "\n")
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, *unknown.split(","))
    names = [f"feature{number}" for number in range(100)]
    names[70:70] = ["Sterne", "customer_comment", "n" * 55]
    with pytest.raises(InputError) as error:
        read(write(folder, "wide.csv", ",".join(names) + "\n"))
    one_line(error, "feature0, ", "customer_comment", " ... and 83 more")
    assert len(str(error.value)) < 1_000


# ---- a first line that is too long


def test_a_long_first_line_is_rejected_and_the_others_decide(folder):
    long = "x" * (MAX_LINE_BYTES + 9)
    lines = {
        "a.txt": (f"__label__2 {long}\n", "__label__1 bad\n__label__2 good\n"),
        "a.jsonl": (
            f'{{"text": "{long}"}}\n',
            '{"rating": 1, "text": "bad"}\n{"rating": 5, "text": "good"}\n',
        ),
        "a.csv": (f"{long}\n", "rating,text\n1,bad\n5,good\n"),
    }
    for name, parts in lines.items():
        found = got(read(write(folder, name, "".join(parts))))
        assert found == ["line_too_long", (0, "bad"), (1, "good")]


def test_the_conversion_of_a_compressed_file_reads_its_content(folder):
    lines = b"rating,text\n" + b"5,\xfe\xc3\xff\x81\x9d\n" * 3  # of no known encoding
    path = write(folder, "a.csv.bz2", COMPRESS[".bz2"](lines))
    command = "`bzcat FILE | iconv -f ENCODING -t UTF-8 > NEW_FILE`"
    assert command in encoding_remedy(path)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_of_one_long_line_is_refused(folder, end):
    path = write(folder, "one.json", '{"a": "' + "x" * (3 * MAX_LINE_BYTES) + '"}' + end)
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, path, "begins with a line of more than 1,048,576 bytes", "a line of its own")


CR = [
    "__label__1 a\r__label__2 b\r",
    'rating,text\r5,"a\nb"\r',
    "__label__1 a\r__label__2 b\r\n",
    "rating,text\r5,a\r1,b\n",
    'rating,text\r5,"a, b"\r1,b\r\n',
    "label\ttext\r5\ta, b\r1\tb\n",
    '{"rating": 5, "text": "a"}\r{"rating": 1, "text": "b"}\n',
    "rating,text" + "\r5,a good one" * 100_000,
    "rating,text" + "\r5,a good one" * 100_000 + "\r\n",
]


@pytest.mark.parametrize("lines", CR)
@pytest.mark.parametrize(
    ("suffix", "command"),
    [
        ("", r"`tr '\r' '\n' < FILE > NEW_FILE`"),
        (".zst", r"`zstdcat FILE | tr '\r' '\n' > NEW_FILE`"),
    ],
)
def test_lines_that_end_with_cr_alone_are_refused(folder, lines, suffix, command):
    path = write(folder, f"macintosh{suffix}", COMPRESS[suffix](lines.encode()))
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, path, command)


@pytest.mark.parametrize("text", ["a\rb", "a,\rb,", "a, b\r\r, c"])
def test_the_only_line_of_a_file_may_have_carriage_returns(folder, text):
    assert got(read(write(folder, "one.txt", f"__label__2 {text}\n"))) == [(1, text)]


def test_a_quote_in_a_tsv_file_without_quoting_is_a_character(folder):
    lines = ["star_rating\treview_headline\treview_body", '5\t"Nice\t5" wide', '1\tA "b"\tc']
    path = write(folder, "amazon.tsv", "\n".join(lines))
    assert got(read(path)) == [(1, '"Nice: 5" wide'), (0, 'A "b": c')]


def test_the_escaped_line_breaks_of_polarity_files_are_read(folder):
    path = write(folder, "train.csv", r'"2","a\nb","c\n\nd"')
    assert got(read(path)) == [(1, "a\nb: c\n\nd")]
    path = write(folder, "header.csv", "label,text\n2," + r"C:\new" + "\n1,b\n")
    assert got(read(path)) == [(1, r"C:\new"), (0, "b")]


# ---- labels


def test_labels_that_fit_scales_with_opposite_meanings_are_refused(folder):
    path = write(folder, "ones.csv", "label,text\n1,a\n1,b\n")
    with pytest.raises(InputError) as error:
        read(path)
    one_line(error, path, "data.labels={1: ?}")
    for label_map, label in ((ZERO_ONE, 1), (ONE_TWO, 0)):
        assert labels_of(read(path, ReadOptions(label_map=label_map))) == [label] * 2


def test_the_meaning_of_labels():
    stars = LabelReader(Layout("csv", label_scale="1 to 5"))
    for spell in (int, float, str, lambda star: f" {star}.0 ", "{} out of 5 stars".format, Decimal):
        assert [stars.read(spell(star)) for star in range(1, 6)] == [0, 0, NEUTRAL, 1, 1]
        assert stars.read(spell(0)) is None and stars.read(spell(6)) is None
    # The decimal comma of many countries.
    assert (stars.read("5,0"), stars.read(True)) == (1, None)
    for scale in SCALES:
        reader = LabelReader(Layout("csv", label_scale=scale))
        words = ["Positive", "neg", "__label__pos", "neutral"]
        assert [reader.read(word) for word in words] == [1, 0, 1, NEUTRAL]
        assert [reader.read(f"__label__{n}") for n in range(6)] == [*map(reader.read, range(6))]
        wrong = [None, "", "good", "nan", [], {}, math.nan, math.inf, 4.5, 10**30]
        assert [reader.read(value) for value in wrong] == [None] * len(wrong)
    assert LabelReader(Layout("csv", label_scale="0 and 1")).read(True) == 1
    # Half stars, which only a setting gives a meaning.
    halves = load_config(overrides=["data.labels={1.5: 0, 4.5: 1, off: 0, yes: 1}"])
    reader = LabelReader(Layout("csv", label_map=read_options(halves).label_map))
    assert [reader.read(label) for label in (1.5, "4.5", "No", "Off", "yes")] == [0, 1, 0, 0, 1]


# ---- which format


def test_a_text_file_of_reviews_without_labels_is_no_csv_without_a_header(folder):
    for line in ("Great phone, love it\n", "Negative, for me, sadly\n", "Positive, and cheap\n"):
        lines = f"Positive, friendly staff\n{line}"
        path = write(folder, "words.txt", lines)
        assert detect_format(path, ReadOptions(reads_labels=False)).format == "fasttext"
        path = write(folder, "words.csv", lines)
        assert detect_format(path, ReadOptions(reads_labels=False)).format == "csv"


@pytest.mark.parametrize(
    "content, task",
    [
        ("1\tbad, really\n2\tgood\n2\tfine\n", "sentiment"),
        ("1,Bad: really\n2,good\n2,fine\n", "sentiment"),
        ("Late\tbad, really\nRefund\tgood\nLate\tfine\n", "each"),
    ],
)
def test_the_labels_of_a_table_without_a_header_are_no_part_of_a_text(folder, content, task):
    """`predict` reads a file with the suffix `.txt` by the columns by which a run reads it."""
    path = write(folder, "table.txt", content)
    options = ReadOptions(reads_labels=False, task=task)
    assert [text[-6:] for _, text in got(read(path, options))] == ["really", "good", "fine"]
    assert not any("\t" in text or "1" in text for _, text in got(read(path, options)))


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    "form", ["{text} {label}", " {label} {text}", "r{number}\t{label}\t{text}"]
)
@pytest.mark.parametrize("text", ["Good: really", "Great phone, and cheap, again"])
def test_labels_that_do_not_begin_their_lines_are_named(folder, form, text, suffix):
    lines = [
        form.format(text=f"{text} {n}", label=f"__label__{1 + n % 2}", number=n) for n in range(30)
    ]
    data = "".join(f"{one}\r\n" for one in lines).encode()
    path = write(folder, f"late.txt{suffix}", COMPRESS[suffix](data))
    for options in (ReadOptions(), ReadOptions(reads_labels=False)):
        with pytest.raises(InputError, match="labels with __label__ that do not begin") as error:
            read(path, options)
    command = str(error.value).split("`")[1]
    command = command.replace("NEW_FILE", "early.txt").replace("FILE", f"late.txt{suffix}")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    found = got(read(str(folder / "early.txt")))
    assert [label for label, _ in found] == [0, 1] * 15
    assert [" ".join(one.split()[-len(text.split()) - 1 :]) for _, one in found] == [
        f"{text} {n}" for n in range(30)
    ]


@pytest.mark.parametrize(
    "form",
    [
        "{text}@{word}",
        "{text}  \t{number}",
        "{number} {text}",
        "{word}\t{text}",
        "{text} | {number}",
    ],
)
def test_labels_beside_the_texts_of_a_text_file_are_named(folder, form):
    """Published sets have such lines: Financial PhraseBank, the sentences of UCI, SST."""
    texts = [f"Sales rose, again: {n}" for n in range(30)]
    lines = [
        form.format(text=text, word=("negative", "positive")[n % 2], number=n % 2)
        for n, text in enumerate(texts)
    ]
    path = write(folder, "beside.txt", "".join(f"{line}\r\n" for line in lines))
    options = ReadOptions(reads_labels=False, format="auto")
    if form == "{word}\t{text}":  # CSV without a header
        assert [text for _, text in got(read(path, options))] == texts
        return
    with pytest.raises(InputError, match=r"has a label (before|behind) the text on each") as error:
        read(path, options)
    command = str(error.value).split("`")[1]
    command = command.replace("NEW_FILE", "labels.txt").replace("FILE", "beside.txt")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    assert got(read(str(folder / "labels.txt"))) == [(n % 2, text) for n, text in enumerate(texts)]
    whole = read(path, ReadOptions(reads_labels=False, format="fasttext"))
    assert [text for _, text in got(whole)] == lines


@pytest.mark.parametrize("form", ["{n} {text}", "{text}@{n}"])
def test_labels_beside_the_texts_of_a_sorted_file_are_named(folder, form):
    """As in the subjectivity set, whose first half has one label. A few lines have no text."""
    texts = [f"a smart one of number {n}" if n % 150 else "" for n in range(1, 400)]
    lines = [form.format(n=n // 200, text=text) for n, text in enumerate(texts)]
    path = write(folder, "subj.all", "".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError, match=r"has a label (before|behind) the text on each line"):
        read(path)
    # The same number before all texts is no label.
    path = write(folder, "one.all", "".join(f"5 stars for text {n}\n" for n in range(400)))
    with pytest.raises(InputError) as error:
        read(path)
    assert "has a label" not in str(error.value)


def test_labels_with_a_colon_before_the_texts_are_named(folder):
    """The questions of TREC have a class and a finer one."""
    labels = ("LOC:city", "NUM:date", "HUM:ind", "LOC:other")
    texts = [f"Which one is number {n} ?" for n in range(40)]
    lines = [f"{labels[n % 4]} {text}" for n, text in enumerate(texts)]
    path = write(folder, "trec.label", "".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError, match="has a label before the text on each line") as error:
        read(path, ReadOptions(task="each"))
    command = str(error.value).split("`")[1]
    command = command.replace("NEW_FILE", "new.txt").replace("FILE", "trec.label")
    subprocess.run(command, shell=True, check=True, cwd=folder)
    expected = [f"__label__{labels[n % 4]} {text}" for n, text in enumerate(texts)]
    assert (folder / "new.txt").read_text().splitlines() == expected


def test_numbered_and_other_lines_of_a_text_have_no_labels(folder):
    for lines in (
        [f"{n} days later it broke" for n in range(9)],  # numbers of lines do not repeat
        ["5 days later it broke"] * 9,
        ["Score: 5", "Score: 4", "Score: 5", "Good"],
        ["Positive, and cheap", "Negative, and dear", "Positive, really"] * 3,
        ["agent:hello how are you", "client:thanks a lot", "agent:hello again"] * 3,
    ):
        path = write(folder, "numbered.txt", "".join(f"{line}\n" for line in lines))
        found = got(read(path, ReadOptions(reads_labels=False)))
        assert [text for _, text in found] == lines


@pytest.mark.parametrize("start", ['"__label__{n} ', "__LABEL__{n} ", "__label__ {n} "])
@pytest.mark.parametrize("reads_labels", [True, False])
def test_another_form_of_the_labels_of_fasttext_is_named(folder, start, reads_labels):
    lines = [f"{start.format(n=1 + n % 2)}fine phone {n}" for n in range(30)]
    path = write(folder, "form.txt", "".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError) as error:
        read(path, ReadOptions(reads_labels=reads_labels))
    one_line(error, f"{path} has __label__ in its lines, but not as fastText writes it", lines[0])


def test_a_table_with_labels_of_fasttext_in_an_unknown_column_names_its_columns(folder):
    rows = "".join(f"fine phone {n}\t__label__{1 + n % 2}\n" for n in range(30))
    path = write(folder, "table.tsv", f"text\tverdict\n{rows}")
    with pytest.raises(InputError, match="columns are text, verdict; set data"):
        read(path)
    found = got(read(path, ReadOptions(columns={"label": "verdict"})))
    assert [label for label, _ in found] == [0, 1] * 15
    # `predict` would read each line of a text file as a text, with its label.
    path = write(folder, "table.txt", f"xyz\tverdict\n{rows}")
    with pytest.raises(InputError, match="labels with __label__ that do not begin"):
        read(path, ReadOptions(reads_labels=False))


def test_texts_with_commas_are_no_csv_without_a_header(folder):
    texts = [f"Great phone{', really' * (n % 4)}, number {n}." for n in range(40)]
    path = write(folder, "texts.txt", "".join(f"{text}\n" for text in texts))
    with pytest.raises(InputError, match=r"no known format.*fastText: __label__ and a label"):
        read(path)
    assert [text for _, text in got(read(path, ReadOptions(reads_labels=False)))] == texts


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("wrong-name.csv", "__label__1 a, b, c\n", "fasttext"),
        ("wrong-name.txt", '{"rating": 5, "text": "x"}\n', "jsonl"),
        ("wrong-name.json", "rating,text\n5,x\n", "csv"),
        ("first-line-broken", "garbage\n__label__1 a\n", "fasttext"),
        ("first-line-broken", '{"rating": \n\n{"rating": 5, "text": "x"}\n', "jsonl"),
        ("empty.csv", "", "empty"),
        ("blank.csv", " \n\n", "empty"),
    ],
)
def test_the_content_decides_before_the_name(folder, name, content, kind):
    path = write(folder, name, content)
    assert detect_format(path, ReadOptions()).format == kind
    assert len(read(path)) == content.count("\n") - (kind == "csv")


@pytest.mark.parametrize(
    ("format", "content", "parts"),
    [
        ("auto", b"just some text\nand more\n", ["no known format", "data.format"]),
        ("auto", b"PAR1 and nothing more", ["Parquet", "damaged"]),
        ("jsonl", b"a,b\n", ["data.columns"]),
        ("csv", b"__label__1 x\n", ["data.columns"]),
        ("parquet", b"a", ["Parquet", "data.format"]),
    ],
)
def test_files_of_no_known_format_or_of_another_one(folder, format, content, parts):
    path = write(folder, "unknown", content)
    with pytest.raises(InputError) as error:
        read(path, ReadOptions(format=format))
    one_line(error, path, *parts)


@pytest.mark.parametrize("between", ['" ,"', '",\t"', '",\u00a0"', '" ; "', '"|\u2003"'])
def test_white_space_beside_the_quotes_of_a_header_is_named(folder, between):
    lines = [f'"{first}{between}{second}"' for first, second in [("rating", "text"), (5, "good")]]
    path = write(folder, "spaced.csv", "\n".join(lines))
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, f"{path} has white space between a quotation mark and a separator", "`")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("rating:text", "separates its columns with `:`"),
        ("id^rating^text", "separates its columns with `^`"),
        ("rating\x01text", r"separates its columns with `\x01`"),
        ("'rating','text'", "quotes its fields with `'`"),
        ("rating,text;;", "separates its columns with `,`, and ends its lines with other"),
        # The names contain the mark.
        ("rating:int,text:string", "has no columns with known names"),
        ("#rating,text", "has no columns with known names"),
        ("\u201drating\u201d;\u201dtext\u201d", "quotes its fields with `\u201d`"),
    ],
)
def test_another_syntax_of_a_header_is_named(folder, header, problem):
    path = write(folder, "syntax.csv", f"{header}\n{header.replace('rating', '5')}\n")
    with pytest.raises(InputError) as error:
        detect_format(path)
    one_line(error, f"{path} {problem}", *["as its header "] * ("with `" in problem))


# The headers of exports, as their documentation or a published file has them.
EXPORTS = {
    "google_play": (GOOGLE_PLAY, ("Star Rating", "Review Title", "Review Text")),
    "app_store_connect": (
        "rating,title,body,reviewerNickname,createdDate,territory",
        ("rating", "title", "body"),
    ),
    "app_store_connect_flat": (
        "type,id,attributes.rating,attributes.title,attributes.body,attributes.territory",
        ("attributes.rating", "attributes.title", "attributes.body"),
    ),
    "google_play_scraper": (
        "reviewId,userName,content,score,thumbsUpCount,reviewCreatedVersion,at,replyContent",
        ("score", None, "content"),
    ),
    "trustpilot_api": (
        "id,stars,title,text,language,createdAt,updatedAt,status",
        ("stars", "title", "text"),
    ),
    "zendesk_ratings": (
        "assignee_id,comment,created_at,group_id,id,requester_id,score,ticket_id",
        ("score", None, "comment"),
    ),
    "zendesk_tickets": (
        "id,created_at,type,subject,description,priority,status,satisfaction_rating.score",
        ("satisfaction_rating.score", "subject", "description"),
    ),
    "steam": (
        "recommendationid,language,review,timestamp_created,voted_up,votes_up,votes_funny",
        ("voted_up", None, "review"),
    ),
    "datafiniti": (
        "id,name,asins,reviews.date,reviews.doRecommend,reviews.numHelpful,reviews.rating,"
        "reviews.text,reviews.title,reviews.username",
        ("reviews.rating", "reviews.title", "reviews.text"),
    ),
    "imdb_on_kaggle": ("review,sentiment", ("sentiment", None, "review")),
    "app_reviews": ("package_name,review,date,star", ("star", None, "review")),
    "yelp_review_full": ("label,text", ("label", None, "text")),
    "sst2": ("idx,sentence,label", ("label", None, "sentence")),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_the_columns_of_an_export_are_found_without_a_setting(name):
    header, columns = EXPORTS[name]
    for present in (header.split(","), header.lower().split(","), header.upper().split(",")):
        found = find_columns("file", present, ReadOptions())
        names = [name and name.lower() for name in found[:3]]
        assert names == [name and name.lower() for name in columns]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("text", ["text", "content"])
@pytest.mark.parametrize("title", ["title", "summary", None])
@pytest.mark.parametrize("scores", [["0.98", "0.7", "5"], [1, 0, 1], [5, 4, 4]])
def test_a_label_precedes_a_score(folder, kind, text, title, scores):
    table = {"score": scores, "label": [1, 0, 0], text: ["good", "bad", "not good"]}
    table |= {title: ["a", "b", "c"]} if title else {}
    path = write(folder, f"two_labels.{kind}", as_file(kind, table))
    found = read(path)
    assert labels_of(found) == [1, 0, 0]
    has_title = title == "title" or (title and text == "text")
    assert found[0].text == ("a: good" if has_title else "good")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_another_rating_precedes_a_score(folder, kind):
    table = {"score": [0.98, 0.7, 0.5], "stars": [5, 1, 2], "text": ["good", "bad", "not good"]}
    path = write(folder, f"confidence.{kind}", as_file(kind, table))
    assert labels_of(read(path)) == [1, 0, 0]


def test_a_thumb_is_no_star(folder):
    rows = "".join(f"{vote},text {n} of a review\n" for n, vote in enumerate(["True", "False"] * 9))
    path = write(folder, "steam.csv", f"voted_up,review\n{rows}")
    layout = detect_format(path)
    assert layout.label_scale == "0 and 1"


def test_names_that_have_other_meanings_are_read_in_files_without_other_texts_alone(folder):
    rows = "score,comment\n5,Slow but friendly answer.\n1,Nobody answered me.\n5,Good.\n"
    assert got(read(write(folder, "zendesk.csv", rows)))[0] == (1, "Slow but friendly answer.")
    rows = "rating,text,comment\n5,Good,\n1,,An answer of the shop.\n"
    assert got(read(write(folder, "shop.csv", rows))) == [(1, "Good"), "unknown_columns"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json.gz", "a.dat"])
@pytest.mark.parametrize(
    "line", ["Too Many Requests", "error code: 1020", '{"success": false, "reason": "quota"}']
)
def test_the_only_line_of_a_file_may_be_a_message_of_a_server(folder, name, line):
    """No list of messages is complete."""
    data = COMPRESS[".gz" if name.endswith(".gz") else ""](f"{line}\n".encode())
    with pytest.raises(InputError, match="a message of a server, download it again") as error:
        read(write(folder, name, data))
    assert f"if its only line, '{line}', is" in str(error.value)
    with pytest.raises(InputError, match=r"no columns|no known format") as error:
        read(write(folder, "two.csv", f"{line}\nx\n"))
    assert "server" not in str(error.value)
