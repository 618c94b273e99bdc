"""Files that are not reviews are named and refused, whatever their name and their compression."""

import base64
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyarrow.parquet import encryption

from core.errors import InputError
from preprocessing.reading.contents import refuse_other_content
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    detect_format,
    one_line,
    read,
    write,
)

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


def arrow(new_writer):
    out = io.BytesIO()
    table = pa.table({"label": [1], "text": ["x"]})
    with new_writer(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def orc_bytes():
    out = pa.BufferOutputStream()
    orc.write_table(pa.table({"label": [1], "text": ["x"]}), out)
    return out.getvalue().to_pybytes()


ENDS = ("", "-le", "-be")
ZLIB = [zlib.compress(100 * REVIEWS, level) for level in (1, 5, 6, 9)]
CONTENTS = {
    "a tar archive": [tar()],
    "a zip archive": [zipped("train.ft.txt"), zipped()],
    "an Excel workbook": [zipped("[Content_Types].xml"), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"],
    "an archive": [
        *ZLIB,
        b"\x89LZO\0\r\n",
        lzma.compress(REVIEWS),
        b"7z\xbc\xaf\x27\x1c\0\4",
        b"Rar!\x1a\x07\1\0",
    ],
    "a binary file": [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"\x93NUMPY\x01\0"],
    "a pickle of Python": [pickle.dumps([REVIEWS, 1], number) for number in (2, 3, 4, 5)],
    "a pointer of Git LFS, not the file itself": [
        b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12345\n"
    ],
    "a pointer of git-annex, not the file itself": [
        b"/annex/objects/SHA256E-s12--ab.csv\n",
        b"../.git/annex/objects/K9/xw/SHA256E-s12--ab.csv/SHA256E-s12--ab.csv",
    ],
    "a pointer of DVC, not the file itself": [b"outs:\n- md5: ab12\n  size: 9\n  path: a.csv\n"],
    "a web page": [
        b"<title>403 Forbidden</title>",
        b"<!DOCTYPE html>\n<html><body>Log in</body></html>",
        b"\xef\xbb\xbf\n<!-- saved, with a comma -->\n<HTML lang=en>",
        b"<!doctype HTML>",
    ],
    "an error message of a server": [
        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>',
        b"<Error><Code>NoSuchKey</Code>",
        b'{"error": {"code": 404, "message": "No such object"}}',
        b'{"error":"Unauthorized","text":"x"}',
        b'{"code":401,"message":"Log in first"}',
        b'{"code": 500, "message": "%s"}\n' % (b"retry " * 200),
        b"Not Found",
        b"404: Not Found\n",
        b"Access to dataset someone/reviews is restricted. You must be logged in.",
        b'{\n  "message": "Not Found",\n  "documentation_url": "x"}',
    ],
    "an XML document": [
        b'<?xml version="1.0"?>\n<reviews><review stars="5">Good</review>',
        b'<reviews>\n  <review stars="5">Good</review>\n',
        b"<review>\n<asin>B01</asin>\n<rating>\n4.0\n</rating>\n",
        b"<table border=1><tr><td>rating</td>",
    ],
    "a dump of an SQL database": [
        b"INSERT INTO reviews VALUES (5,'x','y');\n",
        b"-- MySQL dump 10.13\n--\n\n/*!40101 SET NAMES utf8 */;\nDROP TABLE IF EXISTS `r`;\n",
        b"--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n",
        b"SET client_encoding TO 'UTF8';\r\n",
        b"insert into r (rating,\n text) select 5, 'x';\n",
        b"create table r (rating int, text text);\ninsert into r values (5, 'x');\n",
        b"COPY public.r (rating, text) FROM stdin;\n5\tgood\n",
        b"--\n-- PostgreSQL database dump\n--\n\n\\restrict 71mnxJ8F\n\n-- by pg_dump 15.18\n\n"
        b"SET statement_timeout = 0;\n",
        b"PGDMP\1\x0e\0\4\x08\1\1\1\0",
        b"PGCOPY\n\xff\r\n\0\0\0\0\0",
    ],
    "a file with a field of a record on each line": [
        b"product/productId: B001\nreview/score: 5.0\nreview/text: good\n\n"
    ],
    "a file of R": [
        b"X\n\0\0\0\3\0\4\1\0" + bytes(90),
        b"RDX3\nX\n\0\0\0\3",
        b"A\n3\n262146\n197888\n",
    ],
    "a Stata file": [b"<stata_dta><header><release>118</release>"],
    "an SPSS file": [b"$FL2@(#) SPSS DATA FILE"],
    "a TFRecord file": [b"\x2c\1\0\0\0\0\0\0abcd\n\xa9\2\n" + bytes(290)],
    "a torrent": [b"d8:announce34:http://tracker.example/announce13:creation date"],
    "an SQLite database": [b"SQLite format 3\0\x10\0\x01\x01"],
    "an Arrow file": [arrow(pa.ipc.new_file), b"FEA1\0\0\0\0"],
    "a stream of Arrow, as Polars and `datasets` of Hugging Face write it": [
        arrow(pa.ipc.new_stream),
        b"\xff\xff\xff\xff\xa0\0\0\0\4\0\0\0\xf2\xff\xff\xff\x14\0\0\0\4\0\1\0",
    ],
    "a part of a dataset, as `save_to_disk` of Hugging Face writes it": [
        b'{"splits": ["train", "test"]}',
        b'{\n  "_data_files": [\n    {\n      "filename": "data-00000-of-00001.arrow"\n    }\n  ],',
        b'{\n  "citation": "",\n  "description": "",\n  "features": {\n    "text": {',
        b'{\n  "builder_name": "csv",\n  "citation": "",\n',
    ],
    "training data of Rasa in YAML": [
        b'version: "3.1"\n\nnlu:\n- intent: greet\n  examples: |\n    - hello\n',
        b"# our bot\nnlu:\n  - lookup: city\n    examples: |\n      - Lima\n",
    ],
    "training data of Rasa in Markdown": [
        b"## intent:greet\n- hello\n- hi [Bob](name)\n\n## intent:bye\n- bye\n",
        b"<!-- our bot -->\n## intent: ask price\n* how much\n",
    ],
    "an ARFF file of Weka": [
        b"% 1. Title: reviews\n%\n@RELATION reviews\n\n@ATTRIBUTE text STRING\n@DATA\n",
    ],
    "a DuckDB database": [b"\x8b)\xb6c\xc86)dDUCK\xe7\3\0\0\0\0\0\0" + bytes(90)],
    "an ORC file": [orc_bytes()],
    "an Avro file": [b"Obj\x01\x04\x16avro.schema"],
    "an encrypted file": [
        b"-----BEGIN PGP MESSAGE-----\n\nhQEM",
        b"\x85\x02\x0c\x03\xb1\xc2\r\xff",
        b"\x8c\r\4\t\3\2\xb1\xc2\r\xff",
        b"Salted__\xb1\r\xc2\xff",
        b"$ANSIBLE_VAULT;1.1;AES256\n6233\n",
        b"age-encryption.org/v1\n-> X25519 ab\n",
    ],
    "a file that git-crypt encrypted": [b"\0GITCRYPT\0\xb1\xc2\r\xff\x01\2"],
    "an encrypted Parquet file": [b"PARE\x15\x04\x15"],
    "a document": [b"%PDF-1.7\n", b"{\\rtf1\\ansi"],
    "a file that begins with NUL bytes": [bytes(600), bytes(4096) + REVIEWS],
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
        b'{\n  "rating": 5,\n  "text": "x"\n}\n',
        b'{"reviews": [{"rating": 5, "text": "x"}]}',
        b'{"rating": 5, "text": "x"},\n{"rating": 1, "text": "y"},\r\n{"rating"',
    ],
    "lines of JSON lists": [
        b'["rating", "text"]\n[5, "x"]\n',
        b'[5, "x", "y"]\r\n[1, "z", "u"]\r\n',
    ],
    "lines of JSON in a field of CSV": [
        b'"{""rating"": 5, ""text"": ""x""}"\n',
        b'"{""rating"": 5, ""text"": ""%s""}"\r\n' % (b"x " * 5000),
    ],
    "lines of JSON within quotation marks": [rb'"{\"rating\": 5, \"text\": \"x\"}"'],
    "JSON with record separators": [b'\x1e{"rating": 5, "text": "x"}\n\x1e{"rating": 1}\n'],
}


@pytest.mark.parametrize(("suffix", "format"), [("", "auto"), ("", "fasttext"), (".gz", "auto")])
@pytest.mark.parametrize("kind", CONTENTS)
def test_content_that_is_not_reviews_is_refused(folder, kind, suffix, format):
    for content in CONTENTS[kind]:
        path = write(folder, "reviews.ft.txt", COMPRESS[suffix](content))
        with pytest.raises(InputError) as error:
            detect_format(path, ReadOptions(format=format))
        one_line(error, f"{path} {'contains' if suffix else 'is'} {kind}")


@pytest.mark.parametrize("name", ["a.csv.crdownload", "a.csv.part", "a.parquet.filepart"])
def test_an_unfinished_download_is_refused_by_its_name(folder, name):
    path = write(folder, name, b"rating,text\n5,good\n1,bad\n")
    with pytest.raises(InputError) as error:
        detect_format(path, ReadOptions())
    one_line(error, f"{path} has the name of an unfinished download: ", "or rename it")


@pytest.mark.parametrize(
    "line",
    [
        b'{"message": "Missing a part", "label": 1}',
        b'{"images": [{"url": "x"}], "rating": 5, "text": "x"}',
        b"rating,text\n5,<html> is easy",
        b"__label__1 <!DOCTYPE html> was all I got",
        b"rating,ORChid\n",
        b"PARENT_ASIN,RATING,TEXT\n",
        b"PARENTS love it\n",
        b"Not found in the box: the cable\n",
        b'{"status": 404, "text": "x", "rating": 5}',
        b'{"code": 401, "message": "It shows %s"}\n{"code": 402}\n' % (b"401 " * 200),
        b'{"error": "It fails", "text": "x"}\r\n{"error": "None", "text": "y"}\r\n',
        b'{"message": "Not found", "label": 1}\n{"message": "Works", "label": 2}\n',
        b'{"text": "x", "rating": 5},\n{"text": "y", "rating": 1}\n',
        b"[really] good\n[not] good\n",
        b"<br /><br />It works\n",
        b"<p><b>It works</b></p>\n",
        b"Insert into the slot, then it works\nCreate table tops, easily\n",
        b"# insert into,text\n5,good\n",
        b"Set alarm to seven; I get up\nplay jazz\n",
        b"set it = yes\nInsert into slot (it fits)\n",
        b"review/comments: none\nIt works\n",
        b"<P><B>It works</B>\n",
        b"<ul><li>It works</ul>\n",
        b"[[ASIN:B004M9F6YA A camera]] works\n",
        b"<user> <url> look at this\n",
        b'["a", "b"] are in the box\n["a"] is not\n',
        b"x\x01y\n5\x01good\n",
        b'{"items": [{"x": 1}], "rating": 5, "text": "good"}\n{"items": [], "rating": 1}\n',
        b'{"builder_name": "Acme", "text": "x", "rating": 5}\n{"builder_name": "B"}\n',
        b'"{""id"": 1}",5,good\n"{""id"": 2}",1,bad\n',
        b'{"splits": ["a", "b"], "text": "good", "rating": 5}\n{"splits": [], "rating": 1}\n',
    ],
)
def test_reviews_are_no_other_content(line):
    refuse_other_content("reviews", line, False)


class Kms(encryption.KmsClient):
    """A client of key management that does not protect the keys."""

    def wrap_key(self, key_bytes, _):
        return base64.b64encode(key_bytes)


def test_an_encrypted_column_of_a_parquet_file_is_named(folder):
    path = str(folder / "secret.parquet")
    keys = encryption.CryptoFactory(lambda _: Kms())
    table = pa.table({"rating": [1, 5], "text": ["a", "b"], "other": [1, 2]})

    def written(plaintext_footer=True, **columns):
        configuration = encryption.EncryptionConfiguration(
            footer_key="key", plaintext_footer=plaintext_footer, column_keys=columns
        )
        properties = keys.file_encryption_properties(
            encryption.KmsConnectionConfig(), configuration
        )
        with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)

    for plaintext_footer in (True, False):
        written(plaintext_footer, key=["text"])
        for reads_labels in (True, False):
            with pytest.raises(InputError) as error:
                detect_format(path, ReadOptions(reads_labels=reads_labels))
            one_line(error, f"{path} is an encrypted Parquet file: ")
    written(key=["other"])
    assert detect_format(path, ReadOptions()).format == "parquet"
    assert [review.text for review in read(path)] == ["a", "b"]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "row_group_size": 2}])
def test_joined_parquet_files_are_refused(folder, options):
    """Only the last of them has an index at the end, so that the rows of the others are lost."""
    parts = []
    for number in range(3):
        path = folder / f"part-{number}.parquet"
        texts = [f"{text} {number}" for text in ("fine", "broken", "slow")]
        pq.write_table(pa.table({"rating": [5, 1, 2], "text": texts}), path, **options)
        assert [review.text for review in read(str(path))] == texts
        parts.append(path.read_bytes())
    for joined in (parts[:2], parts, [parts[0], parts[0]]):
        path = write(folder, "joined.parquet", b"".join(joined))
        with pytest.raises(InputError) as error:
            read(path)
        one_line(error, f"{path} is several Parquet files, one after the other")


STRING_VIEW = (
    "c-n1J%TB^T6rJMOupsWH=_FmSp^2m*nD~f+#VwXdeAPxHuq&mhETFYi(ckf({1=zr>9i0NPcrv;=G>dixZrgeVHU"
    "G2Mln#CY7jyyc&M^ZB$UEqzsZ{a5GmRyj^}&mXa1Z~-a8?>x(;5#rOzl~v{BL3)Xx^Hh_D(aGz&kn2DuR$8s!GJO"
    "k&`@hDvzJWZ2O>%`>YbgNfl4(mPbSNyIoouSt5Ym6Kh~HK#kWcEC%z_N8dltfC{_&}-m%_s<t{KmA8J5;y~a2avc"
    "1*nl0u5Fmm<l-Fz<;8p|!fKgu9d61#)Z1cNE6g|hlnaJWsSO>NcqwLOf{L(3NyXd2N5_56>mDr<fN;m_jSmLkVMC"
    "g4^#$Ga81|aTV=1T<yRbaTIL%&b-dg7<AZ(-I7lBDIQX}qbwhv|9|uj<FA?M}PPEqo&JO5gYkT>LG+&XaQS"
)
"""A Parquet file with a column of `string_view`, as pyarrow 26 writes it, in base 85."""


@pytest.mark.skipif(hasattr(pa, "string_view"), reason="this pyarrow reads the type")
def test_a_type_that_pyarrow_does_not_know_is_named(folder):
    path = write(folder, "a.parquet", zlib.decompress(base64.b85decode(STRING_VIEW)))
    with pytest.raises(InputError) as error:
        detect_format(path, ReadOptions())
    one_line(error, "a newer version of Arrow", "Unrecognized type:24", "store_schema=False")


@pytest.mark.parametrize("end", ["aa", "ab", "001", "02"])
def test_a_part_of_an_archive_is_refused_with_the_command_that_joins_the_parts(folder, end):
    path = write(folder, f"its reviews.csv.gz.{end}", gzip.compress(REVIEWS)[:200])
    with pytest.raises(InputError) as error:
        detect_format(path, ReadOptions())
    joined = f"`cat '{folder}/its reviews.csv.gz'.* > NEW_FILE`"
    one_line(error, f"{path} has the name of a part of an archive: join the parts", joined)


@pytest.mark.parametrize("name", ["a.tar.gz", "part-aa", "reviews.gz.1", "a.zip.csv"])
def test_other_names_are_no_parts_of_archives(folder, name):
    assert len(read(write(folder, name, gzip.compress(REVIEWS)))) == 40


def test_a_review_may_begin_like_other_content(folder):
    path = write(folder, "reviews.ft.txt", b"ARROW1 cable works\n__label__2 fine\n")
    assert detect_format(path, ReadOptions(format="fasttext")).format == "fasttext"


@pytest.mark.parametrize(
    ("kind", "command"),
    [("an SQLite database", "export it with `sqlite3"), ("an ORC file", "convert it with `python")],
)
def test_a_compressed_file_is_decompressed_before_a_command_reads_it(folder, kind, command):
    path = write(folder, "reviews.csv", gzip.compress(CONTENTS[kind][0]))
    with pytest.raises(InputError, match=f"^{path} contains {kind}: decompress it; then {command}"):
        detect_format(path, ReadOptions())


@pytest.mark.parametrize("kind", ["a zip archive", "an Excel workbook"])
def test_a_truncated_zip_archive_must_be_downloaded_again(folder, kind):
    path = write(folder, "reviews.zip", CONTENTS[kind][0][:-30])
    problem = f"^{path} is {kind} that is damaged or incomplete: download or copy it again$"
    with pytest.raises(InputError, match=problem):
        detect_format(path, ReadOptions())


def test_an_archive_in_an_archive_is_refused_also_if_it_is_truncated(folder):
    inner = [COMPRESS[suffix](REVIEWS) for suffix in (".bz2", ".gz", ".zst")]
    for archive in (*map(gzip.compress, inner), gzip.compress(tar())[:-20]):
        path = write(folder, "twice.ft.txt", archive)
        with pytest.raises(InputError, match=r"contains an? (tar )?archive: unpack"):
            detect_format(path, ReadOptions())
