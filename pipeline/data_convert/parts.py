"""Decompress a part of a large archive once, because a check reads its files several times."""

from __future__ import annotations

import re

from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.contents import PARQUET_MAGIC, find_kind
from preprocessing.reading.open_files import file_compression, open_bytes
from preprocessing.reading.samples import sampled_lines

_TOTAL = {"gzip": 32 << 20, "zstd": 32 << 20, "bz2": 8 << 20}
"""Bytes of the content of all archives that are decompressed: a MiB of bz2 takes 0.1 s."""
_LEAST, _FEW = 1 << 20, 4
"""Minimum bytes of each archive, and the number of archives of which other places are read too."""
_NO_LINES = re.compile(rb'(?s).*"[^"\n]*\n')
"""A quotation mark that may be around several lines."""


def write_part(path: str, target: str, number: int) -> bool:
    """Write the beginning of the content of an archive, and of a bz2 file lines of other places.

    Args:
      path: path or URL of the archive.
      target: path of the new file.
      number: number of archives that share the time of a check.

    Returns:
      Whether a part was written. The whole content, damaged content, and content that is not text
      is not written.

    Raises:
      InputError: the file cannot be opened.
    """
    kind = file_compression(path)
    if kind is None:
        return False
    most = max(_LEAST, _TOTAL[kind] // number)
    with open_bytes(path) as stream:
        try:
            content = stream.read(most)
        except CorruptArchive:
            return False
    if len(content) < most or content.startswith(PARQUET_MAGIC) or find_kind(content):
        return False
    end = content.rfind(b"\n") + 1
    with open(target, "wb") as file:
        file.write(content[:end] or content)
        if end and kind == "bz2" and number <= _FEW and not _NO_LINES.match(content[:_LEAST]):
            file.writelines(sampled_lines(path))
    return True
