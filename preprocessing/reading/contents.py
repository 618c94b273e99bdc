"""Refuse content that is not reviews, such as archives and documents.

Content compressed with bz2, gzip or zstd is decompressed before, so `reviews.tar.gz` is a tar
archive.
"""

from __future__ import annotations

import codecs
import json
import re
import shlex
import tarfile
import zipfile
from typing import NamedTuple

from core.errors import InputError
from preprocessing.reading import encoding
from preprocessing.reading.open_files import open_raw

_HEAD = 512
"""Bytes of a file by which other content is recognised."""
_UNPACK = "unpack it into another folder, and read that folder"
_EXPORT = "export its records as CSV (UTF-8), and read only that file"
_ENCODING = (
    "convert it with `amazon-reviews data convert FOLDER NEW_FOLDER`, and read only the new folder"
)
_LINES = (
    "write one JSON object for each record on a line, as pandas' "
    "`to_json(NEW_FILE, orient='records', lines=True)` does, and read only the new file"
)
_AGAIN = "download the file again, with the credentials that its server requires"
PARQUET_MAGIC = b"PAR1"
"""The first bytes of a Parquet file, and the last ones."""
LISTS = ("reviews", "data", "rows", "records", "items", "results")
"""Names of the list of records in the answer of a server."""
DOWNLOAD_AGAIN = "download or copy it again"
_FINISH = "finish the download, and read only the finished file"
_PICKLE = "read_pickle('FILE')"


class Kind(NamedTuple):
    """A kind of content that no run reads.

    Attributes:
      name: what the content is, such as `a zip archive`.
      remedy: what to do with the file.
    """

    name: str
    remedy: str


ENCRYPTED_PARQUET = Kind(
    "an encrypted Parquet file",
    "write its records without encryption with a program that has the key, and read only the new "
    "file",
)
JSON_DOCUMENT = Kind("one JSON document", f"{_LINES}, or {_ENCODING}")
TAR = Kind("a tar archive", _UNPACK)
ZIP = Kind("a zip archive", _UNPACK)
_BINARY = Kind("a binary file", _EXPORT)
_WIDE = Kind("text in UTF-16 or UTF-32", _ENCODING)
_SERVER_ERROR = Kind("an error message of a server", _AGAIN)


def _pandas(read: str) -> str:
    return (
        f"convert it with `python -c \"import pandas; pandas.{read}.to_parquet('NEW_FILE')\"`, and "
        "read only the new file"
    )


_RASA = (
    'write its intents as CSV, such as with `python3 -c "import csv, re, sys, yaml; '
    "rows = csv.writer(sys.stdout); rows.writerow(['label', 'text']); "
    "[rows.writerow([one['intent'], "
    r"re.sub(r'\[([^]]*)\](\([^)]*\)|\{[^}]*\})', r'\1', line[2:])])"
    " for one in yaml.safe_load(open('FILE'))['nlu'] if 'intent' in one"
    " for line in one['examples'].splitlines()]\" > NEW_FILE`, and read only the new file"
)
"""The remedy for `nlu.yml`, in whose examples an entity is `[Paris](city)` or `[Paris]{...}`."""
_RASA_MARKDOWN = (
    'write its intents as fastText does, such as with `awk \'/^##/ {intent = ""} /^## *intent:/ '
    '{intent = $0; sub(/^## *intent: */, "", intent); gsub(/[ \\t\\r]+/, "_", intent)} '
    'intent && sub(/^[ \\t]*[-*] +/, "") {print "__label__" intent " " $0}\' FILE '
    "| sed -E 's/\\[([^]]*)\\]\\([^)]*\\)/\\1/g' > NEW_FILE`, and read only the new file"
)
"""The remedy for `nlu.md`, in whose examples an entity is `[Paris](city)`."""
_ERROR_OBJECT = re.compile(
    rb'(?i)\s*\{\s*("errors?"\s*:\s*[{\["]|"(message|detail|code)"\s*:\s*"'
    rb"(not found|forbidden|unauthorized|bad credentials|access ?denied"
    rb'|internal server error|missing authentication token)\.?"'
    rb'|"(code|status|status_?code)"\s*:\s*"?[45]\d\d"?\s*,\s*"(message|msg|error|detail)")',
    re.DOTALL,
)
"""The beginning of an object that a server sends. JSON lines of tickets may begin so too."""
_NEXT_OBJECT = b"\n{"
_KINDS = [
    (re.compile(pattern, re.DOTALL), Kind(name, remedy))
    for pattern, name, remedy in (
        (
            rb"version https://git-lfs\.github\.com/spec/",
            "a pointer of Git LFS, not the file itself",
            "fetch the file with `git lfs pull` in its repository",
        ),
        (
            rb"(\.{0,2}/)*(\.git/)?annex/objects/",
            "a pointer of git-annex, not the file itself",
            "fetch the file with `git annex get` in its repository",
        ),
        (
            rb"(md5: \w+\s+)?outs:\s*\n\s*- (md5|etag|hash|path|size)\b",
            "a pointer of DVC, not the file itself",
            "fetch the file with `dvc pull` in its repository",
        ),
        # Pages and errors that a server sends in place of the file.
        (
            rb"(?i)\s*(<!--.{,400}?-->\s*)?"
            rb"<(!doctype html|html|head|title|style|body|script|meta)\b",
            "a web page",
            _AGAIN,
        ),
        (
            rb"\s*(<\?xml[^>]*>\s*)?<(Error|ErrorResponse|\w+:Fault)\b",
            *_SERVER_ERROR,
        ),
        (
            rb"(?i)\s*([45]\d\d:? )?(not found|forbidden|unauthorized|access denied|bad gateway"
            rb"|(entry|repository) not found|service unavailable|internal server error)\.?\s*\Z"
            rb"|\s*(access to (model|dataset) \S+ is restricted"
            rb"|invalid credentials in authorization)",
            *_SERVER_ERROR,
        ),
        (
            rb"<stata_dta>",
            "a Stata file",
            _pandas("read_stata('FILE')"),
        ),
        # Without a declaration: a tag behind another one, which is not the markup of a text. Blanks
        # separate placeholders of a text, such as `<user> <url>`.
        (
            rb"\s*<\?xml\b|\s*<svg\b"
            rb"|\s*<(?!(?i:a|b|big|blockquote|br|center|code|dl|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre"
            rb"|s|small|span|strong|sub|sup|u|ul)\b)"
            rb"[A-Za-z][\w.:-]*(\s[^<>]*)?>([ \t\r]*\n\s*)?<\w",
            "an XML document",
            _EXPORT,
        ),
        # A statement ends its line, because a text may begin with `Set it to low; it`.
        (
            rb"PGDMP|PGCOPY\n\xff|\s*((--|#|/\*|\\restrict )[^\n]*\n\s*)*"
            rb"(?i:create (table|database|schema) (if not exists )?\S+\s*[(;]"
            rb"|insert into \S+\s*(\([^)]*\)\s*)?(values|select)\b|drop table (if exists )?\S+;"
            rb"|set ([@\w.]+ ?=|\w+ to )[^\n]*;[ \t\r]*\n"
            rb"|copy \S+ \([^)]*\) from stdin;)",
            "a dump of an SQL database",
            "load it into a database, export the table as CSV (UTF-8), and read only that file",
        ),
        (
            rb"\s*((product|review|beer|user)/\w+: [^\n]*\n){2}",
            "a file with a field of a record on each line",
            "write each record on a line of its own, such as a JSON object with the names of the "
            "fields, and read only the new file",
        ),
        (rb"\$FL[23]@\(#\)", "an SPSS file", _pandas("read_spss('FILE')")),
        (
            rb"RD[AX][23]\n|X\n\0\0\0[\2\3]|A\r?\n[23]\r?\n\d+\r?\n\d+\r?\n",
            "a file of R",
            "write its data frame with `write.csv(..., row.names = FALSE)`, and read only the new "
            "file",
        ),
        (
            rb"..[\0-\x0f]\0{5}.{4}\n",
            "a TFRecord file",
            "write the labels and texts of its records as CSV (UTF-8), and read only that file",
        ),
        (
            rb"d(8:announce|13:announce-list|7:comment|10:created by|4:info)\d*",
            "a torrent",
            _FINISH,
        ),
        # The first member of an Office document has one of these names.
        (
            rb"PK\x03\x04.{26}(\[Content_Types\]|_rels/|docProps/|xl/)",
            "an Excel workbook",
            _EXPORT,
        ),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", _EXPORT),
        (rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis", "a LibreOffice document", _EXPORT),
        (rb"PK(\x03\x04|\x05\x06|\x07\x08)", *ZIP),
        # A supported archive is decompressed once. These bytes are an archive inside an archive.
        (
            rb"\xfd7zXZ\x00|BZh[1-9](1AY&SY|\x17rE8P\x90)|\x1f\x8b|\x28\xb5\x2f\xfd"
            rb"|x[\x9c\xda]|x[\x01\x5e](?=.{,500}\0)|\x89LZO\0"
            rb"|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|\x04\x22\x4d\x18|\x1f\x9d|\xff\x06\0\0sNaPpY"
            rb"|\x5d\0\0[\0-\xff]{2}|LZIP\x01",
            "an archive",
            _UNPACK,
        ),
        # Binary data follows, in contrast to a column PARENT_ASIN.
        (rb"PARE.{0,3}[\0-\x08\x0e-\x1f]", *ENCRYPTED_PARQUET),
        (
            rb"-----BEGIN PGP MESSAGE-----|Salted__|age-encryption\.org/v|\$ANSIBLE_VAULT;"
            rb"|\x85[\0-\4].\x03|\x8c.\x04[\1-\x0b]",
            "an encrypted file",
            "decrypt it into another folder, and read that folder",
        ),
        (
            rb"\0GITCRYPT\0",
            "a file that git-crypt encrypted",
            "decrypt it with `git-crypt unlock` in its repository",
        ),
        (
            rb"SQLite format 3\0",
            "an SQLite database",
            "export it with `sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > NEW_FILE`, and read "
            "only the new file",
        ),
        (
            rb".{8}DUCK.{2}\0{6}",
            "a DuckDB database",
            "export it with `duckdb FILE \"COPY TABLE TO 'NEW_FILE' (FORMAT parquet)\"`, and read "
            "only the new file",
        ),
        (rb"ARROW1\0\0|FEA1", "an Arrow file", _pandas("read_feather('FILE')")),
        (
            rb"\xff\xff\xff\xff.{3}\0[\4-\x40]\0\0\0",
            "a stream of Arrow, as Polars and `datasets` of Hugging Face write it",
            'convert it with `python -c "import pyarrow as pa, pyarrow.parquet as pq; '
            "pq.write_table(pa.ipc.open_stream('FILE').read_all(), 'NEW_FILE')\"`, and read only "
            "the new file",
        ),
        (rb"ORC[^ -~]", "an ORC file", _pandas("read_orc('FILE')")),
        (rb"Obj\x01", "an Avro file", "export its records as Parquet, and read only that file"),
        (
            rb"\x80[\x02-\x05][\x95(\]}cX]",
            "a pickle of Python",
            f"only if you trust its author, {_pandas(_PICKLE)}",
        ),
        (rb"%PDF-|\{\\rtf", "a document", _EXPORT),
        (
            rb"\0{64}",
            "a file that begins with NUL bytes, as an unfinished download or copy does",
            DOWNLOAD_AGAIN,
        ),
        # Amazon's reviews until 2014 are published as such lines.
        (rb"\s*\{u?'", "a file of Python dictionaries", _LINES),
        (
            rb'\s*"\{\s*\\"',
            "lines of JSON within quotation marks",
            "decode each line once more, such as with `jq -r . FILE > NEW_FILE`, and read only the "
            "new file",
        ),
        (
            # The line ends behind the field, unless it is longer than the bytes that are inspected.
            rb'\s*"\{\s*""(?:[^"]|"")*(?:"[ \t\r]*(?:\n|$)|$)',
            "lines of JSON in a field of CSV",
            "write this field without its quotation marks, such as with `python3 -c "
            '"import csv, sys; [print(row[0]) for row in csv.reader(sys.stdin)]" < FILE > NEW_FILE`'
            ", and read only the new file",
        ),
        (
            rb"\x1e\s*\{",
            "JSON with record separators",
            "remove them, such as with `tr -d '\\036' < FILE > NEW_FILE`, and read only the new "
            "file",
        ),
        (
            rb'\s*\{\s*"(splits": ?\[[^]{}]*\]\s*\}|_data_files": ?\[\s*\{\s*"filename'
            rb'|builder_name": ?"[^\n]*\n\s*"citation"|citation": ?"[^\n]*\n\s*"description")',
            "a part of a dataset, as `save_to_disk` of Hugging Face writes it",
            'export the dataset with `python3 -c "import datasets; d = datasets.load_from_disk('
            "'FOLDER'); [part.to_parquet(f'{name}.parquet') for name, part in (d.items() if "
            "isinstance(d, dict) else [('train', d)])]\"`, and read only the new files",
        ),
        (
            rb"(?i)\s*(%[^\n]*\n\s*)*@relation\s[^\n]*\n\s*(%[^\n]*\n\s*)*@attribute\s",
            "an ARFF file of Weka",
            _EXPORT,
        ),
        (
            rb"(\s*#[^\n]*\n)*\s*(version:[^\n]*\n\s*)?nlu:\s*- *(intent|lookup|synonym|regex):",
            "training data of Rasa in YAML",
            _RASA,
        ),
        (
            rb"(?s)\s*(<!--.*?-->\s*)?## *(intent|lookup|synonym|regex):[^\n]+\n\s*[-*] ",
            "training data of Rasa in Markdown",
            _RASA_MARKDOWN,
        ),
        # A list of objects or lists, the documents that pandas writes, and an object on many lines.
        # Each line of a file of JSON lines may begin with a list. A text may begin with `[[ASIN:`.
        (
            rb'\s*\[\s*(\{|\[\s*(["\d\[\]{-]|true|false|null))|\s*\[\s*\]\s*$'
            rb'|\s*\{"(schema":\s*\{"fields"|columns":\s*\[|0":\s*\{'
            rb'|[^"]{1,60}":\s*\{"0":)|\s*\{"(' + "|".join(LISTS).encode() + rb')":\s*\[\s*\{'
            rb'(?!(?s:.*?)\}[ \t]*\r?\n\{")'
            rb'|\s*\{[ \t]*\r?\n\s*"',
            *JSON_DOCUMENT,
        ),
    )
]
"""The beginning of content, and its kind. The first pattern that matches decides."""
_COMMA_LINES = re.compile(rb"(\s*\{[^\n]*\},[ \t]*\r?\n){2}")
"""Objects with a comma behind each of them."""
_LISTS = Kind(
    "lines of JSON lists",
    "write an object with the names of its values on each line, and read only the new file",
)
_UNFINISHED = re.compile(
    r".*(\.(crdownload|opdownload|filepart|aria2|!ut|download)|\.\w+\.(part|partial))",
    re.IGNORECASE,
)
"""The names that browsers and other programs give to a file until its download is finished."""
_PART = re.compile(
    r"(?P<whole>.*\.(gz|tgz|bz2|zst|xz|zip|7z|tar))\.(a[a-z]|\d{2,3})", re.IGNORECASE | re.DOTALL
)
"""The names of the parts of an archive, as `split` writes them."""
_FOR_FILE = re.compile(r"\bFILE\b")
"""A remedy with a command that reads the file."""
_ZIP_MAGIC = b"PK\x03\x04"
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def refuse_other_content(path: str, head: bytes, packed: bool) -> None:
    """Check that a file may contain reviews.

    Args:
      path: the path of the file.
      head: the beginning of its decompressed content, at least 512 bytes if it has them.
      packed: whether the file is compressed.

    Raises:
      InputError: the content is not reviews, the file cannot be opened, or the name is that of an
        unfinished download.
    """
    if _UNFINISHED.fullmatch(path):
        raise InputError(f"{path} has the name of an unfinished download: {_FINISH}, or rename it")
    part = _PART.fullmatch(path)
    if part:
        whole = shlex.quote(part["whole"])
        raise InputError(
            f"{path} has the name of a part of an archive: join the parts, such as with `cat "
            f"{whole}.* > NEW_FILE`, and read only the new file"
        )
    kind = find_kind(head)
    if kind:
        name, remedy = kind
        if not packed and head.startswith(_ZIP_MAGIC) and not _is_complete_zip(path):
            name, remedy = f"{name} that is damaged or incomplete", DOWNLOAD_AGAIN
        # A command for FILE cannot read the compressed file.
        if packed and _FOR_FILE.search(remedy):
            remedy = f"decompress it; then {remedy}"
        raise InputError(f"{path} {'contains' if packed else 'is'} {name}: {remedy}")


def _is_complete_zip(path: str) -> bool:
    """Return whether a zip archive has its index, which is at its end."""
    with open_raw(path) as raw:
        return zipfile.is_zipfile(raw)


def find_kind(head: bytes) -> Kind | None:
    """Return the kind of content that no run reads; None if the content may be reviews.

    Args:
      head: the beginning of its decompressed content, at least 512 bytes if it has them.
    """
    if _COMMA_LINES.match(head):
        return JSON_DOCUMENT
    are_lists = _are_lists(head)
    has_objects = _NEXT_OBJECT in head
    head = head[:_HEAD].removeprefix(codecs.BOM_UTF8)
    if encoding.wide(head):
        return _WIDE
    if _ERROR_OBJECT.match(head) and not has_objects:
        return _SERVER_ERROR
    for pattern, kind in _KINDS:
        if pattern.match(head):
            return kind
    if are_lists:
        return _LISTS
    if _is_tar(head):
        return TAR
    return _BINARY if _is_binary(head) else None


def _are_lists(head: bytes) -> bool:
    """Return whether the first two lines are lists of JSON with values."""
    lines = head.split(b"\n", 2)[:2]
    if len(lines) < 2 or not all(line.lstrip().startswith(b"[") for line in lines):
        return False
    try:
        return all(json.loads(line) for line in lines)
    except (ValueError, RecursionError):
        return False


def _is_binary(head: bytes) -> bool:
    # Images, pickles, and files of NumPy, HDF5 or Arrow begin like this. A single NUL in a line of
    # text is a mistake in this line.
    has_nul = b"\0" in head[:9] and not head.startswith(PARQUET_MAGIC)
    return has_nul and len(_CONTROL.findall(head)) > max(1, len(head) // 100)


def _is_tar(head: bytes) -> bool:
    # The header of an old tar archive has no magic bytes. The header of each has a checksum.
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
