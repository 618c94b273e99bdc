"""Look into files that are not lines of UTF-8, of which a part is converted for the look."""

from __future__ import annotations

import codecs
import os
import re
import shlex
from collections.abc import Mapping, Sequence

from pipeline.data_check import json_documents
from preprocessing.reading import encoding
from preprocessing.reading.archives import MAGIC_BYTES, CorruptArchive, compression
from preprocessing.reading.files import SourceFile, open_bytes, open_raw, relative_path

_HEAD, _MOST = 1 << 20, 16 << 20
"""Bytes of a file whose encoding is found, and the maximum number that are converted."""
JSON_DOCUMENT = "one JSON document"
"""What a file is that contains a list of objects instead of one object on each line."""
_UNPACK = {"bz2": "bzip2 -dc", "gzip": "gzip -dc", "zstd": "zstd -dc"}
_SUFFIX = re.compile(r"\.(bz2|gz|zst|zstd)$", re.IGNORECASE)


def find_encoding(path: str, max_fraction: float) -> str | None:
    """Return the encoding of a file that has to be converted, or None.

    Args:
      path: path or URL of the file.
      max_fraction: the maximum fraction of lines that may be in another encoding than UTF-8.

    Returns:
      The name of the encoding in `iconv`, or JSON_DOCUMENT.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_bytes(path) as stream:
        try:
            head = stream.read(_HEAD)
        except CorruptArchive:
            return None
    if head.startswith(b"PAR1"):
        return None
    wide = encoding.wide(head)
    if wide:
        return wide
    if json_documents.find_list(path) is not None:
        return JSON_DOCUMENT
    lines = head.split(b"\n")
    if len(head) == _HEAD:
        lines = lines[:-1] + _later_lines(path)
    other = sum(not encoding.is_utf8(line) for line in lines)
    return encoding.guess(b"\n".join(lines)) if other > max_fraction * len(lines) else None


def _later_lines(path: str) -> list[bytes]:
    """Return lines of the middle and of the end of a plain file; none of a compressed one."""
    if file_compression(path):
        return []
    found: list[bytes] = []
    with open_raw(path) as raw:
        size = raw.seek(0, os.SEEK_END)
        for start in (size // 2, size - _HEAD):
            raw.seek(max(0, start))
            found += raw.read(_HEAD).split(b"\n")[1:-1]
    return found


def file_compression(path: str) -> str:
    """Return the compression of a file; empty for a plain file.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_raw(path) as raw:
        return compression(path, raw.read(MAGIC_BYTES)) or ""


def _new_names(base: str, paths: Sequence[str], encodings: Mapping[str, str]) -> dict[str, str]:
    """Return path -> new path below the folder, of the files to convert; no two are equal.

    Args:
      base: the folder of the files.
      paths: the files.
      encodings: path -> encoding of the files to convert.
    """
    taken = {relative_path(base, path) for path in paths if path not in encodings}
    found = {}
    for path in sorted(encodings):
        name = plain = _SUFFIX.sub("", relative_path(base, path))
        stem, ending = os.path.splitext(plain)
        number = 2
        while name in taken:
            name, number = f"{stem}-{number}{ending}", number + 1
        taken.add(name)
        found[path] = name
    return found


class Converted:
    """The files of an input, of which some are replaced by parts of them in UTF-8.

    Args:
      base: the folder of the input.
      files: the files of the input, or a sample of them.
      encodings: path -> encoding of all files of the input that are to be converted.
      scratch: an existing empty folder for the converted parts.

    Attributes:
      base: the folder of the input.
      encodings: see above.
      files: the files, with the paths of the converted parts.
      folder: the folder that the commands write; `base` if no file has to be converted.
      partial: the paths of converted parts that are not the whole file.
    """

    def __init__(
        self,
        base: str,
        files: Sequence[SourceFile],
        encodings: dict[str, str],
        scratch: str,
    ) -> None:
        self.base = base
        self.encodings = encodings
        self._originals: dict[str, str] = {}
        self._names = _new_names(base, [file.path for file in files], encodings)
        self._scratch = scratch
        self.folder = f"{base.rstrip('/')}-utf8" if encodings else base
        self.partial: set[str] = set()
        self.files = [self._convert(file) for file in files]

    def original(self, path: str) -> str:
        """Return the path of a file of the input, whose converted part may have another one."""
        return self._originals.get(path, path)

    def final(self, path: str) -> str:
        """Return the path of a file after the commands.

        Args:
          path: the path of the file, or of its converted part.
        """
        original = self.original(path)
        name = self._names.get(original, relative_path(self.base, original))
        return os.path.join(self.folder, name)

    def is_renamed(self, path: str) -> bool:
        """Return whether a file of the input has another name after the commands."""
        return self.final(path) != os.path.join(self.folder, relative_path(self.base, path))

    def message(self, text: str) -> str:
        """Return a message with the paths of the files in place of those of converted parts."""
        for part, path in self._originals.items():
            text = text.replace(part, path)
        return text

    def commands(self) -> tuple[str, ...]:
        """Return the commands that write all files in UTF-8 into `folder`; none without need."""
        if not self.encodings:
            return ()
        source, target = shlex.quote(self.base.rstrip("/")), shlex.quote(self.folder)
        lines = [f"mkdir -p {target} && cp -r {source}/. {target}"]
        for path, name in sorted(self.encodings.items()):
            if name == JSON_DOCUMENT:
                key = json_documents.find_list(path) or ""
                lines.append(json_documents.command(path, key, self.final(path)))
                continue
            packed = file_compression(path)
            new = self.final(path)
            reading = f"iconv -f {name} -t UTF-8"
            old = shlex.quote(path)
            if not packed:
                lines.append(f"{reading} {old} > {shlex.quote(new)}")
            else:
                unpacking = f"{_UNPACK[packed]} {old}"
                copy = shlex.quote(os.path.join(self.folder, relative_path(self.base, path)))
                lines.append(f"{unpacking} | {reading} > {shlex.quote(new)} && rm {copy}")
        return tuple(lines)

    def _convert(self, file: SourceFile) -> SourceFile:
        name = self.encodings.get(file.path)
        if name is None:
            return file
        target = os.path.join(self._scratch, self._names[file.path])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        self._originals[target] = file.path
        if name == JSON_DOCUMENT:
            json_documents.convert(file.path, json_documents.find_list(file.path) or "", target)
            return file._replace(path=target, size=os.path.getsize(target))
        decoder = codecs.getincrementaldecoder(name)("replace")
        with open_bytes(file.path) as source, open(target, "w", encoding="utf-8", newline="") as to:
            data = source.read(_MOST)
            is_all = len(data) < _MOST
            text = decoder.decode(data, is_all)
            to.write(text if is_all else text[: text.rfind("\n") + 1])
        if not is_all:
            self.partial.add(target)
        return file._replace(path=target, size=os.path.getsize(target))
