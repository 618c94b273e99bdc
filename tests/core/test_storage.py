"""Paths and URLs of files."""

import pytest

from core.storage import is_url


@pytest.mark.parametrize("url", ["gs://bucket/folder", "s3://b", "hdfs:///x", "file:///folder"])
def test_a_path_with_a_scheme_is_a_url(url):
    assert is_url(url)


@pytest.mark.parametrize("path", ["", "/folder", "~/folder", "a:b", "gs:/bucket", "C:\\folder"])
def test_any_other_path_is_local(path):
    assert not is_url(path)
