"""Give a source archive the same bits for the same files: `python -m tools.source_archive FILE`.

`make package` calls it. setuptools writes the present time, the times of the checkout and the user
into the archive.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def main(file: str) -> None:
    rewrite(Path(file), int(os.environ["SOURCE_DATE_EPOCH"]))


def rewrite(file: Path, epoch: int) -> None:
    """Rewrite a .tar.gz in place: members in the order of their names, without time and user.

    Args:
      file: the archive.
      epoch: the time of every member, in seconds since 1970.
    """
    content = io.BytesIO()
    with tarfile.open(file) as source, tarfile.open(fileobj=content, mode="w") as target:
        for member in sorted(source.getmembers(), key=lambda each: each.name):
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.mtime, member.pax_headers = epoch, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    # Without the name of the file, which the header may contain too.
    with file.open("wb") as written, gzip.GzipFile("", "wb", 9, written, epoch) as compressed:
        compressed.write(content.getvalue())


if __name__ == "__main__":
    main(*sys.argv[1:])
