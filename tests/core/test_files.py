"""Paths whose names contain the characters of patterns."""

import gzip

import pytest
import tensorflow as tf

from core.errors import InputError
from core.files import damage_named, list_files
from tests import examples


def test_only_the_names_of_files_are_patterns(tmp_path):
    for folder in ("x[1]*?", "x1a"):
        (tmp_path / folder).mkdir()
        for name in ("b", "a1", "a2"):
            (tmp_path / folder / name).touch()
    folder = str(tmp_path / "x[1]*?")
    assert list_files(folder) == [f"{folder}/{name}" for name in ("a1", "a2", "b")]
    assert list_files(folder, "a*") == [f"{folder}/a1", f"{folder}/a2"]
    assert list_files(f"{folder}/missing") == []


def test_the_damaged_file_is_named(tmp_path):
    good, bad = str(tmp_path / "good.gz"), str(tmp_path / "bad.gz")
    examples.write(good, [b"a"])
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"no record" * 9))
    with pytest.raises(InputError, match=f"^{bad} is damaged"), damage_named([good, bad]):
        list(tf.data.TFRecordDataset([good, bad], "GZIP"))
    with pytest.raises(tf.errors.DataLossError), damage_named([good]):
        list(tf.data.TFRecordDataset(bad, "GZIP"))
