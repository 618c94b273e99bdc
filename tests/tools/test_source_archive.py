"""The source archive of a release has the same bits for the same files."""

import os
import tarfile

from tools import source_archive

FILES = {"pkg-1.0/setup.py": (b"setup()", 0o644), "pkg-1.0/run": (b"#!/bin/sh", 0o755)}


def write_archive(folder, seconds, names, umask):
    """Write an archive as setuptools does, from files of some time; return its path."""
    folder.mkdir()
    for name in names:
        content, mode = FILES[name]
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode & ~umask)
        os.utime(file, (seconds, seconds))
    archive = folder / "pkg-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("pkg-1.0", *names):
            tar.add(folder / name, name, recursive=False)
    return archive


def test_two_archives_of_the_same_files_have_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = write_archive(tmp_path / "first", 1_000_000.25, [*FILES], 0)
    second = write_archive(tmp_path / "second", 2_000_000.5, [*FILES][::-1], 0o077)
    assert first.read_bytes() != second.read_bytes()
    for archive in (first, second):
        source_archive.main(str(archive))
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        assert {member.mtime for member in tar} == {1_700_000_000}
        for name, (content, mode) in FILES.items():
            assert tar.extractfile(name).read() == content
            assert tar.getmember(name).mode == mode
