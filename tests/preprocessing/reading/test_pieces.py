"""Files in pieces and batches: the records are the same as in sequence, for every cut."""

import bz2
import gzip
import random
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocessing.reading import pieces
from preprocessing.reading.columns import Layout
from preprocessing.reading.formats import fasttext
from preprocessing.reading.labels import LabelReader
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
    csv_text,
    detect_format,
    got,
    read,
    records,
    write,
)

FASTTEXT = ReadOptions(format="fasttext", label_map=ONE_TWO)


def batches(path, options):
    found = cut_file(path, detect_format(path, options))
    return [batch for piece in found for batch in read_batches(piece, POOL)]


def expected(data):
    """Return the records of the lines, one after the other, without the usual short way."""
    labels = LabelReader(Layout("fasttext", label_map=ONE_TWO))
    *lines, last = data.split(b"\n")
    lines += [last] if last else []
    lines[:1] = [line.removeprefix(b"\xef\xbb\xbf") for line in lines[:1]]
    batch = Batch()
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_BYTES:
            batch.reject(number, LINE_TOO_LONG, TOO_LONG)
        else:
            fasttext._parse(batch, number, line.removesuffix(b"\r"), labels)
    return sorted(records(batch))


LINE = st.sampled_from(
    [
        b"__label__1 Good: it is",
        b"__label__2 bad",
        b"__label__2 \xc3\xbcber: gut",
        b"__label__1 9: x: y\r",
        b"__label__2\ttab",
        b"__label__1 : colon first",
        b"__label__1 A",
        b"__label__1  A: blank first",
        b"__label__1 ",
        b"__label__3 three",
        b"__label__positive word",
        b"__label__neutral word",
        b"__label__1 \xa0",
        b"__label__1 \xc2\xa0",
        b"__label__2 n\0l",
        b"__label__1 __label__2 both",
        b"",
        b"\r",
        b"no label",
    ]
)


@settings(max_examples=100)
@given(suffix=SUFFIXES, lines=st.lists(LINE, max_size=30), end=st.booleans(), bom=st.booleans())
def test_batches_of_fasttext_equal_the_records(folder, suffix, lines, end, bom):
    data = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + b"\n" * end
    path = write(folder, f"same.txt{suffix}", COMPRESS[suffix](data))
    assert read(path, FASTTEXT) == expected(data)


@settings(max_examples=60)
@given(lines=st.lists(LINE, max_size=60), end=st.booleans(), size=st.integers(1, 400))
def test_pieces_of_a_plain_file_share_its_lines(folder, lines, end, size):
    data = b"\n".join(lines) + b"\n" * end
    path = write(folder, "pieces.txt", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PLAIN_BYTES", size)
        patch.setattr(pieces, "_READ", 7)
        assert read(path, FASTTEXT) == expected(data)


def numbered(count, seed=0):
    """Return lines of very different lengths, so that blocks end anywhere in them."""
    rng = random.Random(seed)
    return [
        b"__label__%d title %d: %s"
        % (n % 2 + 1, n, rng.randbytes(rng.randrange(90)).hex().encode())
        for n in range(count)
    ]


def test_pieces_of_a_bz2_file_share_its_lines(folder, monkeypatch):
    monkeypatch.setattr(pieces, "_BZ2_BYTES", 7_000)
    lines = numbered(8_000)
    lines[4_000] = b"no label"
    data = b"\n".join(lines)
    path = write(folder, "pieces.bz2", bz2.compress(data, 1))
    assert len(cut_file(path, detect_format(path, FASTTEXT))) > 5
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


def test_a_csv_file_of_several_batches(folder):
    rows = [(n % 2 * 4 + 1, f"title {n}", f"body\n{n}") for n in range(2_500)]
    path = write(folder, "all.csv", csv_text([("rating", "title", "text"), *rows]))
    assert got(read(path)) == [(r // 4, f"{title}: {body}") for r, title, body in rows]


# ---- lines

PARTS = st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"\xff\0", b"defghi"]))


def found_lines(chunks):
    """Return the numbers and the lines of content that is read in parts; None for a long line."""
    found = []
    for item in split_lines([Chunk(data, True) for data in chunks], 0):
        if isinstance(item, Lost):
            found.append((item.record.position, None))
        else:
            found += enumerate(item.data.split(b"\n"), item.first)
    return found


@settings(max_examples=200)
@given(parts=PARTS, cuts=st.lists(st.integers(1, 40)), limit=st.sampled_from([0, 2, 6, 1 << 20]))
def test_lines_do_not_depend_on_how_they_are_read(parts, cuts, limit):
    data = b"".join(parts)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[start:end] for start, end in pairwise(edges)]
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        # No chunk is longer than the longest line.
        most = max(limit, *map(len, chunks), 0)
        patch.setattr(pieces, "MAX_LINE_BYTES", most)
        assert found_lines(chunks) == [
            (number, line if len(line.removesuffix(b"\r")) <= most else None)
            for number, line in enumerate(expected, 1)
        ]


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
    (lost,) = (batch.lost for batch in batches(path, FASTTEXT) if batch.lost)
    assert lost < 2 * len(archive) / 13 + 5_000


@pytest.mark.parametrize(
    ("head", "options"),
    [(b"", FASTTEXT), (b"label,text\n", ReadOptions(format="csv", label_map=ONE_TWO))],
)
def test_damage_in_gzip_ends_the_reading_and_is_counted(folder, head, options):
    lines = [b"1," + line if head else line for line in numbered(8_000)]
    archive = bytearray(gzip.compress(head + b"\n".join(lines)))
    middle = len(archive) // 2
    archive[middle : middle + 20_000] = random.Random(0).randbytes(20_000)
    path = write(folder, "hit.gz", bytes(archive))
    found = batches(path, options)
    # The first damaged bytes may be decompressed to any content.
    (damage,) = (
        item for batch in found for item in batch.rejected if item.reason == "corrupt_archive"
    )
    assert "damaged at byte" in damage.detail
    assert len(archive) * 0.4 < sum(batch.lost for batch in found) < len(archive) * 0.6
