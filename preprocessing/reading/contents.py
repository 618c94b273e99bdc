"""Refuse content that is not reviews, such as archives and documents.

The bytes are those behind bz2, gzip and zstd, so `reviews.tar.gz` is a tar archive.
"""

from __future__ import annotations

import re
import tarfile

from preprocessing.reading.columns import NoReviews

_UNPACK = "unpack it into another folder, and read that folder"
_EXPORT = "export its reviews as CSV (UTF-8), and read that file"
_NEW = "and read only the new file"
_CONVERT = f"convert it with `iconv -f {{}} -t UTF-8 FILE > NEW_FILE`, {_NEW}"
_ONE_DOCUMENT = (
    'convert it to one object on each line with `python3 -c "import pandas; pandas.read_json('
    "'FILE', orient='{}').to_json('NEW_FILE', orient='records', lines=True)\"`, " + _NEW
)
_TO_JSON = (
    'convert it to JSON with `python3 -c "import ast, json, sys; [print(json.dumps('
    'ast.literal_eval(line))) for line in sys.stdin]" < FILE > NEW_FILE`, ' + _NEW
)
_DOWNLOAD = "download the reviews again, because a server may send a page in place of a file"

_KINDS = [
    (re.compile(pattern, re.DOTALL), kind, remedy)
    for pattern, kind, remedy in (
        # The first member of an Office document has one of these names.
        (rb"PK\x03\x04.{26}(\[Content_Types\]|_rels/|docProps/|xl/)", "an Excel workbook", _EXPORT),
        (rb"PK(\x03\x04|\x05\x06|\x07\x08)", "a zip archive", _UNPACK),
        (rb"\xfd7zXZ\x00", "an xz archive", _UNPACK),
        # A supported archive is decompressed once, so these are in another archive.
        (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "a bz2 archive", _UNPACK),
        (rb"\x1f\x8b", "a gzip archive", _UNPACK),
        (rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", "a zstd archive", _UNPACK),
        # A review may begin with <html>, but hardly with two elements.
        (
            rb"(\xef\xbb\xbf)?\s*(<!--.{0,400}?-->\s*)?(?i:<!doctype\s+html\b|<html(\s+[a-z]+=|[^>]*>\s*<))",
            "an HTML page",
            _DOWNLOAD,
        ),
        (rb"(\xef\xbb\xbf)?\s*<\?xml\b", "an XML document", _EXPORT),
        (
            rb"version https://git-lfs",
            "a pointer of Git LFS",
            "get its content with `git lfs pull`",
        ),
        (rb"\xff\xfe\0\0|\0\0\xfe\xff", "text in UTF-32", _CONVERT.format("UTF-32")),
        (rb"\xff\xfe|\xfe\xff", "text in UTF-16", _CONVERT.format("UTF-16")),
        # Without a mark: eight ASCII characters.
        (rb"([\t\n\r -~]\0\0\0){8}", "text in UTF-32", _CONVERT.format("UTF-32LE")),
        (rb"(\0\0\0[\t\n\r -~]){8}", "text in UTF-32", _CONVERT.format("UTF-32BE")),
        (rb"([\t\n\r -~]\0){8}", "text in UTF-16", _CONVERT.format("UTF-16LE")),
        (rb"(\0[\t\n\r -~]){8}", "text in UTF-16", _CONVERT.format("UTF-16BE")),
        # Amazon's reviews until 2014 are published as such lines.
        (rb"\s*\{u?'", "a file of Python dictionaries", _TO_JSON),
        # The orientations of pandas.
        (rb"\s*\[\s*\{", "a JSON array", _ONE_DOCUMENT.format("records")),
        (rb"\s*\[\s*\[", "a JSON array", _ONE_DOCUMENT.format("values")),
        (rb'\s*\{"schema":\s*\{"fields"', "one JSON document", _ONE_DOCUMENT.format("table")),
        (rb'\s*\{"columns":\s*\[', "one JSON document", _ONE_DOCUMENT.format("split")),
        (rb'\s*\{"0":\s*\{', "one JSON document", _ONE_DOCUMENT.format("index")),
        (rb'\s*\{"[^"]{1,60}":\s*\{"0":', "one JSON document", _ONE_DOCUMENT.format("columns")),
    )
]
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def refuse_other_content(path: str, head: bytes, packed: bool) -> None:
    """Raise NoReviews if content is of a known kind that is not reviews.

    Args:
      path: the file, for the message.
      head: the first bytes of its decompressed content; 512 bytes are enough.
      packed: whether the file is compressed.
    """
    found = [(kind, remedy) for pattern, kind, remedy in _KINDS if pattern.match(head)]
    if not found and _is_tar(head):
        found = [("a tar archive", _UNPACK)]
    if not found and _is_binary(head):
        found = [("a binary file", _EXPORT)]
    if found:
        kind, remedy = found[0]
        raise NoReviews(f"{path} {'contains' if packed else 'is'} {kind}: {remedy}")


def _is_binary(head: bytes) -> bool:
    # Images, pickles, and files of NumPy, HDF5 or Arrow begin like this. A single NUL in a line of
    # text is a mistake in this line.
    has_nul = b"\0" in head[:9] and not head.startswith(b"PAR1")
    return has_nul and len(_CONTROL.findall(head)) > max(1, len(head) // 100)


def _is_tar(head: bytes) -> bool:
    # The header of an old tar archive has no magic bytes. The header of each has a checksum.
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
