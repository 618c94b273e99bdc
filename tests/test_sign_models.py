"""The guide to signed models: its commands, with the package model-signing."""

import re
import subprocess
import sys

import pytest

from tests.checkout import CHECKOUT

GUIDE = CHECKOUT / "docs" / "how-to" / "sign-models.md"


def bash(commands, folder):
    """Run commands until the first one that fails; return the result."""
    words = ["bash", "-e", "-c", commands]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_commands_of_the_guide_sign_a_model_and_refuse_a_changed_one(tmp_path):
    found = bash(f"{sys.executable} -m pip index versions model-signing", tmp_path)
    if found.returncode:
        pytest.skip(f"the package index has no model-signing: {found.stderr}")
    install, key, sign, verify = re.findall(r"^```bash\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    model = tmp_path / re.search(r"MODEL=(\S+)", sign)[1]
    model.mkdir(parents=True)
    (model / "saved_model.pb").write_bytes(b"graph")
    done = bash(install + key + sign + verify, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "verified" / model.name / "saved_model.pb").read_bytes() == b"graph"

    (model / "saved_model.pb").write_bytes(b"grapi")
    assert bash("rm -r verified incoming\n" + verify, tmp_path).returncode == 1
    assert list((tmp_path / "verified").iterdir()) == []
