"""Empty values, impossible characters, and paths that are patterns."""

import pytest

from core.errors import ConfigError
from core.values import check_values, describe_emptiness
from pipeline.config import load_config


@pytest.mark.parametrize("uri", ["hdfs:///reviews", "dbfs:///reviews", "file:///r", "sqlite:///r"])
def test_a_uri_on_the_default_host_is_not_empty(uri):
    assert describe_emptiness(uri) is None


@pytest.mark.parametrize("uri", ["gs:///reviews", "gs://", "s3://", "http://:80"])
def test_a_uri_without_a_bucket_or_host_is_empty(uri):
    assert "has no bucket or host" in describe_emptiness(uri)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            "data.input_base",
            r"a\0b",
            r"data.input_base: 'a\x00b' contains a NUL character; remove it",
        ),
        ("paths.root", r"a\0b", "paths.root: "),
        ("tracking.mlflow", r"http://a\0b", "tracking.mlflow: "),
        ("data.splits", r"{train: a\0b}", "data.splits"),
        ("paths.metadata", r"a\ud800b", r"'a\ud800b' contains half of a surrogate pair; remove it"),
    ],
)
def test_a_character_that_no_path_can_have_is_one_line(key, text, message):
    words = [f'{key}="{text}"'] if "{" not in text else ['data.splits={train: "a\\0b"}']
    with pytest.raises(ConfigError) as error:
        load_config("sample", words, environ={})
    assert message in str(error.value) and "\n" not in str(error.value)


def test_undecodable_bytes_and_emoji_are_possible_characters():
    check_values(["a\udce4b", "\N{GRINNING FACE}", "a\tb"])
