"""Convert the files of an input: archives, other encodings, JSON documents, and a text a file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from core.errors import ConfigError, InputError
from core.files import free_name
from core.machine import cores
from core.storage import is_url
from pipeline.data_convert import changes
from pipeline.data_convert.archives import unpack
from pipeline.data_convert.changes import Change
from pipeline.data_convert.encodings import decode, find_change
from pipeline.data_convert.json_documents import find_splits, read_records, write_lines
from pipeline.data_convert.label_files import LabelledFile, find_labelled_files, write_labelled
from pipeline.data_convert.names import new_names
from pipeline.data_convert.parts import write_part
from pipeline.data_convert.text_folders import TextFolders, find_text_folders, write_texts
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.contents import JSON_DOCUMENT, ZIP, Kind
from preprocessing.reading.files import SourceFile, find_files, relative_path
from preprocessing.reading.globs import EVERYTHING
from preprocessing.reading.listing import joined
from preprocessing.reading.open_files import open_bytes, open_raw

_SHOWN = 4
_MOST_FILES = 300


class Limits(NamedTuple):
    """How much is converted.

    Attributes:
      files: number of files of each group.
      bytes: bytes of a file that are decoded or unpacked.
      archive: bytes of all members of an archive.
      document: bytes of a JSON document; -1: all.
      texts: number of files with one text.
      packed: bytes of a compressed file, of which a larger one is read in part.
    """

    files: int = sys.maxsize
    bytes: int = sys.maxsize
    archive: int = sys.maxsize
    document: int = -1
    texts: int = sys.maxsize
    packed: int = sys.maxsize


ALL = Limits()
LOOK = Limits(
    files=_MOST_FILES,
    bytes=16 << 20,
    archive=128 << 20,
    document=64 << 20,
    texts=2_000,
    packed=1 << 20,
)


class Output(NamedTuple):
    """A file that a run may be able to read.

    Attributes:
      file: the file: one of the input, or one that was converted.
      name: its path below the new folder.
      source: what it was made of: the path of a file, or of the folder of several files.
      shown: the same below the folder of the input, with the member of an archive.
      changes: what was converted, the outermost archive first; empty if it is a file of the input.
      size: the size of what it was made of, in bytes.
      is_all: whether it has the whole content.
      error: why it cannot be converted; empty if it can be.
    """

    file: SourceFile
    name: str
    source: str
    shown: str
    changes: tuple[Change, ...] = ()
    size: int = 0
    is_all: bool = True
    error: str = ""


class Converter:
    """A conversion of files.

    Args:
      scratch: an existing empty folder for the new files.
      max_fraction: the maximum fraction of lines that may be in another encoding than UTF-8.
      limits: how much is converted.

    Attributes:
      left_out: number of files that were left out because of the limits.
    """

    def __init__(self, scratch: str, max_fraction: float, limits: Limits = ALL) -> None:
        self._scratch = scratch
        self._max_fraction = max_fraction
        self._limits = limits
        self.left_out = 0

    def convert(self, base: str, files: Sequence[SourceFile]) -> list[Output]:
        """Return the files that a run may be able to read, in the order of `files`.

        Args:
          base: the folder of the files.
          files: the files.

        Raises:
          OSError: a file cannot be read or written.
        """
        names = [(file, relative_path(base, file.path)) for file in files]
        new = new_names([name for _, name in names])
        labelled = find_labelled_files(names)
        inside = {file.path for each in labelled for file in each.files}
        folders = find_text_folders([one for one in names if one[0].path not in inside])
        inside.update(file.path for each in folders for file in each.files)
        found = [self._labelled(base, each, new) for each in labelled]
        found += [self._texts(base, each, new) for each in folders]
        others = [one for one in names if one[0].path not in inside]
        plain = [
            Output(file, new[name], file.path, name, size=file.size)
            for file, name in _some(others, self._limits.files)
        ]
        self.left_out += len(others) - len(plain)
        large = [number for number, one in enumerate(plain) if one.size > self._limits.packed]
        with ThreadPoolExecutor(cores()) as pool:
            parts = pool.map(partial(self._part, number=len(large)), [plain[at] for at in large])
            for at, part in zip(large, parts, strict=True):
                plain[at] = part
            for outputs in pool.map(self._convert, plain):
                # A file that is not converted keeps its name.
                found += [one if one.changes else one._replace(name=one.shown) for one in outputs]
        return found

    def _part(self, given: Output, number: int) -> Output:
        """Return a part of a large compressed file; another file as it is."""
        target = os.path.join(mkdtemp(dir=self._scratch), os.path.basename(given.name))
        try:
            if not write_part(given.file.path, target, number):
                return given
        except InputError as error:
            return given._replace(error=str(error))
        file = given.file._replace(path=target, size=os.path.getsize(target))
        return given._replace(file=file, is_all=False)

    def _convert(self, given: Output) -> list[Output]:
        path = given.file.path
        try:
            what = find_change(path, self._max_fraction)
            if what is None:
                return [given]
            folder = mkdtemp(dir=self._scratch)
            target = os.path.join(folder, os.path.basename(given.name))
            if isinstance(what, str):
                is_all = decode(path, what, target, self._limits.bytes)
            elif what == JSON_DOCUMENT:
                return self._document(given, folder)
            else:
                return self._unpacked(given, what, folder)
        except InputError as error:
            return [given._replace(error=str(error))]
        done = given._replace(
            file=given.file._replace(path=target, size=os.path.getsize(target)),
            changes=(*given.changes, changes.decoding(what)),
            is_all=given.is_all and is_all,
        )
        return self._convert(done)

    def _unpacked(self, given: Output, kind: Kind, folder: str) -> list[Output]:
        limits = self._limits
        is_all = unpack(given.file.path, kind, folder, limits.bytes, limits.archive)
        try:
            members = find_files(folder, EVERYTHING)
        except InputError:
            raise InputError(
                f"{given.file.path} is {kind.name} without files of texts: move it out of the "
                "folder, or download or copy it again"
            ) from None
        files = [file._replace(group=given.file.group) for file in members]
        change = changes.ZIP if kind == ZIP else changes.TAR
        return [
            one._replace(
                name=f"{given.name}/{one.name}",
                source=given.source,
                shown=f"{given.shown}/{one.shown}",
                changes=(*given.changes, change, *one.changes),
                is_all=one.is_all and is_all,
            )
            for one in self.convert(folder, files)
        ]

    def _document(self, given: Output, folder: str) -> list[Output]:
        """Return the records of a JSON document, in a file for each of its splits.

        It is `given` if the document has no records.

        Args:
          given: the document.
          folder: an existing empty folder for the new files.

        Raises:
          InputError: the document is not valid.
        """
        path = given.file.path
        with open_bytes(path) as stream:
            try:
                content = stream.read(self._limits.document)
                is_all = not stream.read(1)
            except CorruptArchive:
                return [given]
        try:
            records = read_records(content, is_all)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is {JSON_DOCUMENT.name} that is not valid ({error}): write or download "
                "it again"
            ) from None
        if not records:
            return [given]
        splits = find_splits(content) if is_all else {}
        found = []
        for key, part in (splits or {"": records}).items():
            name = f"{given.name}/{key}.jsonl" if key else given.name
            target = os.path.join(folder, os.path.basename(name))
            with open(target, "w", encoding="utf-8") as file:
                write_lines(part, file)
            found.append(
                given._replace(
                    file=given.file._replace(path=target, size=os.path.getsize(target)),
                    name=name,
                    shown=f"{given.shown}: {key}" if key else given.shown,
                    size=os.path.getsize(target) if key else given.size,
                    changes=(*given.changes, changes.DOCUMENT),
                    is_all=given.is_all and is_all,
                )
            )
        return found

    def _texts(self, base: str, folders: TextFolders, new: dict[str, str]) -> Output:
        parent = folders.parent
        if folders.by_line:
            shown = joined([relative_path(base, file.path) for file in folders.files], _SHOWN)
        else:
            inside = f"{len(folders.files):,} files in {joined(sorted(folders.labels), _SHOWN)}"
            shown = f"{parent}: {inside}" if parent else inside
        what = changes.LINES if folders.by_line else changes.TEXTS
        stem = os.path.join(parent, folders.name) if folders.name else parent or "texts"
        most = self._limits.texts
        write = partial(write_texts, folders, most=most)
        output = self._lines_of(base, folders, stem, new, write)
        is_all = output.is_all and len(folders.files) <= most
        return output._replace(shown=shown, changes=(what,), is_all=is_all)

    def _labelled(self, base: str, given: LabelledFile, new: dict[str, str]) -> Output:
        shown = joined([relative_path(base, file.path) for file in given.files], _SHOWN)
        stem = os.path.join(given.parent, given.name)
        write = partial(write_labelled, given)
        output = self._lines_of(base, given, stem, new, write)
        return output._replace(shown=shown, changes=(changes.LABELLED,))

    def _lines_of(
        self,
        base: str,
        given: TextFolders | LabelledFile,
        stem: str,
        new: dict[str, str],
        write: Callable[[str], None],
    ) -> Output:
        """Return the file of JSON lines that several files become.

        Args:
          base: the folder of the input.
          given: the files.
          stem: the path of the new file below the new folder, without its suffix.
          new: path of a file -> its path in the new folder. The new file is added.
          write: writes the file of a path.
        """
        name = free_name(stem, ".jsonl", set(new.values()).__contains__)
        new[name] = name
        target = os.path.join(mkdtemp(dir=self._scratch), os.path.basename(name))
        error = ""
        try:
            write(target)
        except InputError as damage:
            error = str(damage)
            Path(target).write_bytes(b"")  # no columns may be proposed for the texts before
        size = sum(file.size for file in given.files)
        file = SourceFile(target, os.path.getsize(target), group=given.group)
        source = os.path.join(base, given.parent)
        return Output(file, name, source, name, (), size, not error, error)


def convert_folder(base: str, target: Path, report: Callable[[str], object]) -> int:
    """Write all files of a folder into a new folder, in which a run can read them.

    Files that need no conversion are copied. A run accepts some lines in another encoding than
    UTF-8, and rejects them. In the new folder there is none.

    Args:
      base: the folder or prefix of the files, or one file.
      target: the new folder. After a failure it does not exist.
      report: called with a line for each file after all of them are complete.

    Returns:
      The number of files in the new folder.

    Raises:
      InputError: the files cannot be listed, an archive cannot be unpacked, or a file that has to
        be converted is damaged.
      ConfigError: `target` is not empty, is inside of `base`, or cannot be written.
    """
    if os.path.isfile(base):
        files = [SourceFile(os.path.abspath(base), os.path.getsize(base))]
        base = os.path.dirname(files[0].path)
    else:
        # The next look at the input would read both, and find the same texts twice.
        if not is_url(base) and Path(base).resolve() in target.resolve().parents:
            raise ConfigError(f"{target} is inside of {base}; write a folder beside it")
        files = find_files(base, EVERYTHING)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} exists already; remove it, or write another folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
        scratch = mkdtemp(dir=target, prefix=".part-")
        outputs = Converter(scratch, max_fraction=0.0).convert(base, files)
        for one in outputs:
            if one.error:
                # The member of an archive is in a folder that is removed.
                shown = os.path.join(base, one.shown)
                raise InputError(one.error.replace(one.file.path, shown))
            if one.changes and not one.is_all:
                # A run counts what it loses of a damaged file; of a converted part it would not.
                raise InputError(
                    f"{one.shown} is damaged, so only its beginning can be converted: write or "
                    "download it again"
                )
        for one in outputs:
            new = target / one.name
            new.parent.mkdir(parents=True, exist_ok=True)
            if one.changes:
                os.replace(one.file.path, new)
            else:
                with open_raw(one.file.path) as source, new.open("wb") as file:
                    shutil.copyfileobj(source, file)
        shutil.rmtree(scratch)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise ConfigError(f"{target} cannot be written: {error}") from None
        raise
    for one in outputs:
        made_by = ", ".join(map(str, one.changes))
        report(f"{one.name}: {f'from {one.shown} ({made_by})' if made_by else 'copied'}")
    return len(outputs)


def _some(files: Sequence[tuple[SourceFile, str]], most: int) -> Iterable[tuple[SourceFile, str]]:
    """Return the files, or some of each group at equal distances if there are very many."""
    step = max(1, -(-len(files) // most))
    groups: dict[str, list[tuple[SourceFile, str]]] = {}
    for file in files:
        groups.setdefault(file[0].group, []).append(file)
    return [file for group in groups.values() for file in group[::step]]
