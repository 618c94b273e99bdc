"""The digests of a pushed version: what counts as unchanged."""

import subprocess

import pytest

from core.digests import DIGESTS, check_digests, is_unchanged, sha256, to_text
from core.errors import InputError

NAMES = ("saved_model.pb", "variables/variables.index", "assets/a name with  blanks \u2028.txt")


@pytest.fixture
def version(tmp_path):
    for name in NAMES:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"the content of {name}")
    (tmp_path / DIGESTS).parent.mkdir()
    (tmp_path / DIGESTS).write_text(to_text({name: sha256(str(tmp_path / name)) for name in NAMES}))
    return tmp_path


def test_a_version_as_it_was_pushed_is_unchanged_also_for_sha256sum(version):
    assert is_unchanged(str(version))
    subprocess.run(["sha256sum", "--check", "--quiet", DIGESTS], cwd=version, check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_missing_or_differs_is_a_change(version, name):
    content = (version / name).read_bytes()
    shown = " ".join(name.split())  # messages are one line
    (version / name).write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert not is_unchanged(str(version))
    with pytest.raises(InputError, match=f"{shown} is not the file that was pushed"):
        check_digests(str(version))
    (version / name).unlink()
    with pytest.raises(InputError, match=f"{shown} is missing"):
        check_digests(str(version))
    assert not is_unchanged(str(version))
    (version / name).mkdir()
    assert not is_unchanged(str(version))


@pytest.mark.parametrize("digests", [None, b"", b"\xff\n", b"no digest", b"\n"])
def test_a_version_without_readable_digests_is_not_known_to_be_unchanged(version, digests):
    if digests is None:
        (version / DIGESTS).unlink()
    else:
        (version / DIGESTS).write_bytes(digests)
    assert not is_unchanged(str(version))
    check_digests(str(version))


def test_a_file_that_tensorflow_does_not_read_may_change(version):
    file = version / "assets.extra" / "origin.json"
    file.write_text("{}")
    digests = (version / DIGESTS).read_text()
    (version / DIGESTS).write_text(digests + to_text({"assets.extra/origin.json": "0" * 64}))
    check_digests(str(version))
