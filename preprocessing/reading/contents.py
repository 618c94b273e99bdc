"""Refuse content that is not reviews, such as archives and documents.

The bytes are those behind bz2, gzip and zstd, so `reviews.tar.gz` is a tar archive.
"""

from __future__ import annotations

import re
import tarfile

from core.errors import InputError

_UNPACK = "unpack it into another folder, and read that folder"
_EXPORT = "export its reviews as CSV (UTF-8), and read only that file"
_ENCODING = (
    "convert it with `iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE`, or from UTF-16LE, UTF-16BE or "
    "UTF-32, and read only the new file"
)
_LINES = (
    "write one JSON object for each review on a line, as pandas' "
    "`to_json(NEW_FILE, orient='records', lines=True)` does, and read only the new file"
)

_KINDS = [
    (re.compile(pattern, re.DOTALL), kind, remedy)
    for pattern, kind, remedy in (
        # The first member of an Office document has one of these names.
        (rb"PK\x03\x04.{26}(\[Content_Types\]|_rels/|docProps/|xl/)", "an Excel workbook", _EXPORT),
        (rb"PK(\x03\x04|\x05\x06|\x07\x08)", "a zip archive", _UNPACK),
        # A supported archive is decompressed once, so the last three are in another archive.
        (
            rb"\xfd7zXZ\x00|BZh[1-9](1AY&SY|\x17rE8P\x90)|\x1f\x8b|\x28\xb5\x2f\xfd",
            "an archive",
            _UNPACK,
        ),
        # Without a mark: eight ASCII characters, each beside one NUL or three.
        (
            rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|([\t\n\r -~]\0){8}|(\0[\t\n\r -~]){8}"
            rb"|([\t\n\r -~]\0{3}){8}|(\0{3}[\t\n\r -~]){8}",
            "text in UTF-16 or UTF-32",
            _ENCODING,
        ),
        # Amazon's reviews until 2014 are published as such lines.
        (rb"\s*\{u?'", "a file of Python dictionaries", _LINES),
        # A list of objects or lists, and the documents that pandas writes.
        (
            rb'\s*\[\s*[\[{]|\s*\{"(schema":\s*\{"fields"|columns":\s*\[|0":\s*\{'
            rb'|[^"]{1,60}":\s*\{"0":)',
            "one JSON document",
            _LINES,
        ),
    )
]
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def refuse_other_content(path: str, head: bytes, packed: bool) -> None:
    """Raise InputError if the first 512 bytes of decompressed content are not those of reviews."""
    found = [(kind, remedy) for pattern, kind, remedy in _KINDS if pattern.match(head)]
    if _is_tar(head):
        found.append(("a tar archive", _UNPACK))
    if _is_binary(head):
        found.append(("a binary file", _EXPORT))
    for kind, remedy in found:
        raise InputError(f"{path} {'contains' if packed else 'is'} {kind}: {remedy}")


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
