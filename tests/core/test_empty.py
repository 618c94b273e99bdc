"""What counts as an empty value."""

import pytest

from core.empty import describe_emptiness


@pytest.mark.parametrize("uri", ["hdfs:///reviews", "dbfs:///reviews", "file:///r", "sqlite:///r"])
def test_a_uri_on_the_default_host_is_not_empty(uri):
    assert describe_emptiness(uri) is None


@pytest.mark.parametrize("uri", ["gs:///reviews", "gs://", "s3://", "http://:80"])
def test_a_uri_without_a_bucket_or_host_is_empty(uri):
    assert "has no bucket or host" in describe_emptiness(uri)
