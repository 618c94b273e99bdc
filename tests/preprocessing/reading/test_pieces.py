"""Files in pieces and batches: the records are the same as in sequence, for every cut."""

import bz2
import gzip
import json
import random
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.reading import pieces
from preprocessing.reading.columns import Layout
from preprocessing.reading.detect import inspect
from preprocessing.reading.formats import csv as csv_format
from preprocessing.reading.formats import fasttext
from preprocessing.reading.labels import LabelReader
from preprocessing.reading.open_files import open_bytes
from preprocessing.reading.pieces import (
    MAX_LINE_BYTES,
    TOO_LONG,
    Chunk,
    Lost,
    cut_file,
    split_lines,
)
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import LINE_TOO_LONG, Batch, ReadOptions, Rejected
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    ONE_TWO,
    POOL,
    SUFFIXES,
    Review,
    detect_format,
    read,
    records,
    write,
)

FASTTEXT = ReadOptions(format="fasttext", label_map=ONE_TWO)


def expected(data):
    """Return the records of the lines, one after the other, without the usual short way."""
    labels = LabelReader(Layout("fasttext", label_map=ONE_TWO))
    *lines, last = data.split(b"\n")
    lines += [last] if last else []
    batch = Batch()
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\r")
        if len(text) > pieces.MAX_LINE_BYTES:
            batch.reject(number, LINE_TOO_LONG, TOO_LONG)
        else:
            text = re.sub(b"^(\xef\xbb\xbf)+", b"", text)
            fasttext._parse(batch, number, text, labels)
    return sorted(records(batch))


LINE = st.sampled_from(
    [
        b"__label__1 Good: it is",
        b"__label__2 \xc3\xbcber: gut",
        b"__label__1 9: x: y\r",
        b"__label__2\ttab",
        b"__label__1 : colon first",
        b"__label__1 A",
        b"__label__1  A: blank first",
        b"__label__1 ",
        b"__label__neutral word",
        b"__label__1 \xa0",
        b"__label__1 \xc2\xa0",
        b"__label__2 n\0l",
        b"__label__1 __label__2 both",
        b"",
        b"\r",
        b"no label",
        b"\xef\xbb\xbf__label__1 A file of its own",
        b"\xef\xbb\xbf\xef\xbb\xbf__label__2 after an empty one",
        b"\xef\xbb\xbf",
        b"__label__2 \xef\xbb\xbfa character of the text",
    ]
)


@settings(max_examples=150)
@given(
    suffix=SUFFIXES,
    lines=st.lists(LINE, max_size=60),
    end=st.booleans(),
    bom=st.booleans(),
    size=st.integers(1, 400),
    limit=st.sampled_from([18, MAX_LINE_BYTES]),
)
def test_the_records_do_not_depend_on_how_a_file_is_read(
    folder, suffix, lines, end, bom, size, limit
):
    data = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + b"\n" * end
    path = write(folder, f"pieces.txt{suffix}", COMPRESS[suffix](data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PLAIN_BYTES", size)
        patch.setattr(pieces, "_READ", 7)
        patch.setattr(pieces, "MAX_LINE_BYTES", limit)
        assert read(path, FASTTEXT) == expected(data)


def numbered(count, seed=0):
    """Return lines of very different lengths, so that blocks end anywhere in them."""
    rng = random.Random(seed)
    return [
        b"__label__%d title %d: %s"
        % (n % 2 + 1, n, rng.randbytes(rng.randrange(90)).hex().encode())
        for n in range(count)
    ]


@pytest.mark.parametrize("compiled", [False, True])
def test_pieces_of_a_bz2_file_share_its_lines(folder, monkeypatch, compiled):
    monkeypatch.setattr(pieces, "_BZ2_BYTES", 7_000)
    monkeypatch.setattr(pieces, "_MANY_BLOCKS", 0 if compiled else 32 << 20)
    lines = numbered(8_000)
    lines[4_000] = b"no label"
    data = b"\n".join(lines)
    path = write(folder, "pieces.bz2", bz2.compress(data, 1))
    found = cut_file(path, detect_format(path, FASTTEXT))
    assert len(found) > 5
    assert all(piece.many_blocks == compiled for piece in found)
    assert read(path, FASTTEXT) == expected(data)


def test_a_block_that_starts_at_the_edge_of_two_pieces_is_in_one_of_them(folder):
    first, second = (bz2.compress(b"\n".join(numbered(100)) + b"\n") for _ in range(2))
    path = write(folder, "edge.bz2", first + second)
    [whole] = cut_file(path, detect_format(path, FASTTEXT))
    edge = len(first) + len(b"BZh9")
    both = (whole._replace(end=edge), whole._replace(number=1, start=edge))
    assert sum(batch.lines for piece in both for batch in read_batches(piece, POOL)) == 200


@pytest.mark.parametrize("suffix", ["", ".bz2"])
@pytest.mark.parametrize(("where", "ending"), [(0, b"\n"), (20, b""), (2_999, b"\n"), (2_999, b"")])
def test_an_overlong_line_in_a_file_in_pieces(folder, where, ending, suffix, monkeypatch):
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 150_000)
    lines = numbered(3_000)
    lines[where] = b"__label__1 " + b"x" * 2 * MAX_LINE_BYTES
    data = b"\n".join(lines) + ending
    path = write(folder, f"long{suffix}", COMPRESS[suffix](data))
    assert read(path, FASTTEXT) == expected(data)


def test_an_overlong_line_is_not_held_in_memory():
    chunks = (Chunk(bytes(1 << 20), True) for _ in range(64))
    tracemalloc.start()
    try:
        [lost] = split_lines(chunks, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(lost, Lost)
    assert lost.record.reason == "line_too_long"
    assert peak < 8 << 20


# ---- damage


NULS = bytes(3_000_000)
GOOD = b"".join(
    b"__label__%d review %d of 100 bytes %s\n" % (n % 2 + 1, n, b"x" * 60) for n in range(400)
)
CSV_GOOD = b"label,text\n" + GOOD.replace(b"__label__1 ", b"1,").replace(b"__label__2 ", b"2,")
HOLES = {
    "without line breaks": NULS,
    "with line breaks": b"\n".join([bytes(900_000)] * 3),
    "of 0xFF": b"\xff" * 900_000,
    "with text": b"x" * 3_000_000,
}


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("good", [GOOD, CSV_GOOD])
@pytest.mark.parametrize("hole", HOLES)
def test_content_that_cannot_be_read_counts_as_lost(folder, suffix, good, hole):
    path = write(folder, f"hole{suffix}", COMPRESS[suffix](good + HOLES[hole]))
    options = ReadOptions(label_map=ONE_TWO)
    size = Path(path).stat().st_size
    cut = cut_file(path, detect_format(path, options))
    batches = [batch for piece in cut for batch in read_batches(piece, POOL)]
    assert sum(len(batch.texts) for batch in batches) == 400
    lost = sum(batch.lost for batch in batches)
    assert lost <= size
    if suffix:
        assert lost > size / 2
    else:
        assert lost == pytest.approx(len(HOLES[hole]), abs=2)


def test_a_single_nul_and_a_long_line_lose_no_more_than_themselves(folder):
    path = write(folder, "one.txt", GOOD + b"__label__1 a\0b\n")
    [piece] = cut_file(path, detect_format(path, FASTTEXT))
    assert sum(batch.lost for batch in read_batches(piece, POOL)) == 0
    parts = [
        GOOD,
        b"y" * (MAX_LINE_BYTES + 5),
        b"\n",
        GOOD,
        b"z" * (2 * MAX_LINE_BYTES),
        b"\n",
        GOOD,
    ]
    path = write(folder, "two.txt", b"".join(parts))
    [piece] = cut_file(path, detect_format(path, FASTTEXT))
    assert sum(batch.lost for batch in read_batches(piece, POOL)) == 3 * MAX_LINE_BYTES + 5


def test_each_batch_of_a_csv_file_has_only_the_bytes_that_it_loses(folder, monkeypatch):
    monkeypatch.setattr(csv_format, "_RECORDS", 100)
    long = [b"y" * (MAX_LINE_BYTES + 5), b"z" * (2 * MAX_LINE_BYTES)]
    rows = CSV_GOOD.partition(b"\n")[2]
    data = b"".join([CSV_GOOD, long[0], b"\n", rows, long[1], b"\n", rows])
    path = write(folder, "long.csv", data)
    [piece] = cut_file(path, detect_format(path, ReadOptions(label_map=ONE_TWO)))
    lost = [batch.lost for batch in read_batches(piece, POOL) if batch.lost]
    assert lost == [len(line) for line in long]


@pytest.mark.parametrize("kind", ["fasttext", "jsonl", "csv"])
def test_the_format_behind_damage_at_the_start_is_found(folder, kind):
    rows = [line[11:].decode() for line in numbered(8_000)]
    data = {
        "fasttext": "".join(f"__label__{n % 2 + 1} {text}\n" for n, text in enumerate(rows)),
        "jsonl": "".join(
            json.dumps({"label": n % 2 + 1, "text": text}) + "\n" for n, text in enumerate(rows)
        ),
        "csv": "label,text\n" + "".join(f"{n % 2 + 1},{text}\n" for n, text in enumerate(rows)),
    }[kind]
    archive = bytearray(bz2.compress(data.encode(), 1))
    archive[40:60] = bytes(20)
    path = write(folder, f"start.{kind}.bz2", bytes(archive))
    assert inspect(path, ReadOptions()).layout.format == ("empty" if kind == "csv" else kind)
    damage, *found = read(path)
    assert damage.reason == "corrupt_archive"
    # The reader of CSV stops at the damage.
    assert [record.text for record in found] == ([] if kind == "csv" else rows[-len(found) :])
    assert kind == "csv" or len(found) > 5_000


@pytest.mark.parametrize("blank", ["\n", " \r\n"])
@pytest.mark.parametrize("start", ["label,text\n1,a\n2,b\n", '{"rating": 5, "text": "a"}\n'])
def test_the_format_behind_blank_lines_is_found(folder, blank, start):
    number = 2 * MAX_LINE_BYTES // len(blank)
    path = write(folder, "blank", blank * number + start)
    assert detect_format(path) == detect_format(write(folder, "full", start))


@pytest.mark.parametrize(("size", "seed"), [(20_000, 0), (1 << 20, 2)])
def test_blocks_behind_the_damage_are_read(folder, size, seed, monkeypatch):
    monkeypatch.setattr(pieces, "_BZ2_BYTES", size)
    lines = numbered(8_000)
    archive = bytearray(bz2.compress(b"\n".join(lines), 1))
    at = random.Random(seed).randrange(60_000, len(archive) - 60_000)
    archive[at : at + 20] = bytes(20)
    path = write(folder, "hit.bz2", bytes(archive))
    found = read(path, FASTTEXT)
    (damaged,) = (n for n, record in enumerate(found) if isinstance(record, Rejected))
    texts = [record.text.encode() for record in found if isinstance(record, Review)]
    everything = [line[11:] for line in lines]
    # One or two of the 13 blocks of 100 kB are lost, and the lines that their edges cut.
    before, after = texts[:damaged], texts[damaged:]
    assert before == everything[: len(before)] and after == everything[-len(after) :]
    assert 0 < len(everything) - len(texts) < 2 * 100_000 / 50
    assert [record.position for record in found] == list(range(1, len(found) + 1))


def lines_and_texts(head):
    """Return 8,000 lines of fastText, or of CSV if there is a head, and their texts."""
    lines = [b"1," + line[11:] if head else line for line in numbered(8_000)]
    start = len(b"1,") if head else len(b"__label__1 ")
    return lines, [line[start:] for line in lines]


@pytest.mark.parametrize(
    ("head", "options"),
    [(b"", FASTTEXT), (b"label,text\n", ReadOptions(format="csv", label_map=ONE_TWO))],
)
@pytest.mark.parametrize("place", [0.25, 0.75])
def test_damage_in_gzip_ends_the_reading_and_is_counted(folder, head, options, place):
    lines, _ = lines_and_texts(head)
    archive = bytearray(gzip.compress(head + b"\n".join(lines)))
    start = int(len(archive) * place)
    archive[start : start + 20_000] = random.Random(0).randbytes(20_000)
    path = write(folder, "hit.gz", bytes(archive))
    [piece] = cut_file(path, detect_format(path, options))
    found = list(read_batches(piece, POOL))
    # The first damaged bytes may be decompressed to any content.
    (damage,) = (
        item for batch in found for item in batch.rejected if item.reason == "corrupt_archive"
    )
    assert "damaged at byte" in damage.detail
    lost = sum(batch.lost for batch in found)
    assert lost == pytest.approx((1 - place) * len(archive), abs=len(archive) / 10)


@pytest.mark.parametrize("filling", [b"\0", b"\xff"])
@pytest.mark.parametrize(
    ("head", "options"),
    [(b"", FASTTEXT), (b"label,text\n", ReadOptions(format="csv", label_map=ONE_TWO))],
)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_an_unfinished_download_of_gzip_has_no_reviews_in_its_empty_part(
    folder, filling, head, options, place
):
    # The decoder would repeat earlier reviews for a NUL, without an error.
    lines, all_texts = lines_and_texts(head)
    archive = gzip.compress(head + b"\n".join(lines))
    size = int(len(archive) * place)
    path = write(folder, "unfinished.gz", archive[:size] + filling * (len(archive) - size))
    [piece] = cut_file(path, detect_format(path, options))
    found = list(read_batches(piece, POOL))
    texts = [text for batch in found for text in batch.texts]
    assert texts == all_texts[: len(texts)]
    assert len(texts) > len(lines) * (place - 0.1)
    (damage,) = (item for batch in found for item in batch.rejected)
    assert damage.reason == "corrupt_archive"
    lost = sum(batch.lost for batch in found)
    assert lost == pytest.approx((1 - place) * len(archive), abs=1 << 13)


@pytest.mark.parametrize("behind", [b"", bytes(10_000)])
@pytest.mark.parametrize("blank", [b"\n", b" \n"])
def test_gzip_of_text_that_is_repeated_many_times_is_not_damaged(folder, blank, behind):
    content = GOOD + blank * 3_000_000 + GOOD
    path = write(folder, "repeated.gz", gzip.compress(content) + behind)
    found = read_batches(cut_file(path, detect_format(path, FASTTEXT))[0], POOL)
    counts = [(len(batch.texts), batch.lost) for batch in found]
    assert sum(texts for texts, _ in counts) == 800
    assert not any(lost for _, lost in counts)


@pytest.mark.parametrize("lines", [b";;;;;\r\n", b"5,a,good\n1,b,bad\n"])
def test_gzip_of_lines_that_are_repeated_many_times_is_read_to_its_end(folder, lines):
    # The data of such lines are NUL for more than 512 bytes.
    content = GOOD + lines * 1_000_000 + GOOD
    packed = gzip.compress(content)
    path = write(folder, "repeated.gz", packed + packed)
    assert bytes(512) in packed
    with open_bytes(path) as stream:
        assert stream.read() == content + content


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
@pytest.mark.parametrize(
    ("head", "options"),
    [(b"", FASTTEXT), (b"label,text\n", ReadOptions(format="csv", label_map=ONE_TWO))],
)
@pytest.mark.parametrize("cut", [10, 100, 100_000])
def test_lost_bytes_cover_the_reviews_that_a_truncated_archive_loses(
    folder, suffix, head, options, cut
):
    lines, all_texts = lines_and_texts(head)
    archive = COMPRESS[suffix](head + b"\n".join(lines))
    size = len(archive) - cut
    path = write(folder, f"cut{suffix}", archive[:size])
    pieces_of_file = cut_file(path, detect_format(path, options))
    found = [batch for piece in pieces_of_file for batch in read_batches(piece, POOL)]
    texts = [text for batch in found for text in batch.texts]
    assert texts == all_texts[: len(texts)]
    lost = sum(batch.lost for batch in found)
    assert 0 < lost <= size
    # The part of the reviews in the file that is missing is not larger than the part that is lost.
    present = len(lines) * size / len(archive)
    assert 1 - len(texts) / present < lost / size + 0.02
