"""Files that are not reviews are named and refused, whatever their name and their compression."""

import gzip
import io
import lzma
import pickle
import tarfile
import zipfile

import pytest

from core.errors import InputError
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import COMPRESS, detect_format, one_line, write

REVIEWS = b"__label__1 Bad: It broke.\n__label__2 Good: It works.\n" * 20


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("train.ft.txt")
        member.size = len(REVIEWS)
        archive.addfile(member, io.BytesIO(REVIEWS))
    return out.getvalue()


def zipped(*members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member in members:
            archive.writestr(member, REVIEWS)
    return out.getvalue()


ENDS = ("", "-le", "-be")
CONTENTS = {
    "a tar archive": [tar()],
    "a zip archive": [zipped("train.ft.txt"), zipped()],
    "an Excel workbook": [zipped("[Content_Types].xml")],
    "an archive": [lzma.compress(REVIEWS)],
    "a binary file": [
        pickle.dumps([REVIEWS, 1]),
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
        b"\x93NUMPY\x01\0",
    ],
    "text in UTF-16 or UTF-32": [
        "label,text\n1,good\n".encode(f"utf-{bits}{end}") for bits in (16, 32) for end in ENDS
    ],
    "a file of Python dictionaries": [b"{'overall': 5.0, 'reviewText': \"it's\"}\n"],
    "one JSON document": [
        b'[{"rating": 5, "text": "x"},\n{"rating"\n',
        b'[[5,"x"]]',
        b'{"rating":{"0":5,"1":1},"text":{"0":"a","1":"b"}}',
        b'{"columns":["rating","text"],"index":[0],"data":[[5,"a"]]}',
        b'{"schema":{"fields":[]},"data":[]}',
    ],
}


@pytest.mark.parametrize(("suffix", "format"), [("", "auto"), ("", "fasttext"), (".gz", "auto")])
@pytest.mark.parametrize("kind", CONTENTS)
def test_content_that_is_not_reviews_is_refused(folder, kind, suffix, format):
    for content in CONTENTS[kind]:
        path = write(folder, "reviews.ft.txt", COMPRESS[suffix](content))
        with pytest.raises(InputError) as error:
            detect_format(path, ReadOptions(format=format))
        one_line(error, f"{path} {'contains' if suffix else 'is'} {kind}: ")


def test_a_review_may_begin_like_other_content(folder):
    path = write(folder, "reviews.ft.txt", b"ARROW1 cable works\n__label__2 fine\n")
    assert detect_format(path, ReadOptions(format="fasttext")).format == "fasttext"


def test_an_archive_in_an_archive_is_refused_also_if_it_is_truncated(folder):
    inner = [COMPRESS[suffix](REVIEWS) for suffix in (".bz2", ".gz", ".zst")]
    for archive in (*map(gzip.compress, inner), gzip.compress(tar())[:-20]):
        path = write(folder, "twice.ft.txt", archive)
        with pytest.raises(InputError, match=r"contains an? (tar )?archive: unpack"):
            detect_format(path, ReadOptions())
