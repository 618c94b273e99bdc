"""`make audit`: what a vulnerability, an accepted one and a missing database are."""

import json
import re
import subprocess
import sys

import pytest

from tools import audit

VULNERABLE = {"id": "PYSEC-2026-1", "fix_versions": ["1.1"], "description": "", "aliases": []}


class Auditor:
    """Answers in place of pip-audit.

    Attributes:
      commands: the commands that were called.
      pins: the pins in the answer; None: the auditor ends with a traceback.
    """

    def __init__(self, pins):
        self.commands = []
        self.pins = pins

    def run(self, command, **options):
        self.commands.append(command)
        if self.pins is None:
            return subprocess.CompletedProcess(
                command, 1, "", "Traceback:\nConnectionError: no DNS\n"
            )
        answer = json.dumps({"dependencies": self.pins, "fixes": []})
        return subprocess.CompletedProcess(command, 1, answer, "Found vulnerabilities")


@pytest.fixture
def audited(tmp_path, monkeypatch, capsys):
    """Return a function from the auditor's pins to (exit code, stdout, stderr, its commands)."""
    (tmp_path / "large.txt").write_text("a==1\nb==2\n")
    (tmp_path / "small.txt").write_text("a==1\n")
    (tmp_path / audit.ACCEPTED).write_text("# A comment.\nPYSEC-2025-9 a==1 Never called.\n")

    def call(pins):
        auditor = Auditor(pins)
        monkeypatch.setattr(audit.subprocess, "run", auditor.run)
        code = audit.main(tmp_path)
        return code, *capsys.readouterr(), auditor.commands

    return call


def test_pins_without_a_vulnerability(audited):
    code, out, err, commands = audited([{"name": "a", "version": "1", "vulns": []}])
    assert (code, out, err) == (0, "", "")
    names = [command[-1].rpartition("/")[2] for command in commands]
    assert names == ["small.txt", "large.txt"]
    assert all("--ignore-vuln=PYSEC-2025-9" in command for command in commands)


def test_a_vulnerability_is_a_line_and_a_failure(audited):
    code, out, err, _ = audited([{"name": "a", "version": "1", "vulns": [VULNERABLE]}])
    assert code == 1
    assert out.splitlines()[0] == "small.txt: a==1: PYSEC-2026-1, fixed in 1.1"
    assert err.startswith("make audit: 2 known vulnerabilities; update the pins, or")


@pytest.mark.parametrize(
    ("pins", "reason"),
    [
        (None, "pip-audit failed: ConnectionError: no DNS"),
        ([{"name": "a", "skip_reason": "not on PyPI"}], "1 of 1 pins in small.txt: not on PyPI"),
    ],
)
def test_a_missing_database_is_one_line_and_a_failure(audited, pins, reason):
    code, out, err, commands = audited(pins)
    assert (code, out, len(commands)) == (2, "", 1)
    assert err == (
        "make audit: the pins could not be looked up in the database of vulnerabilities "
        f"({reason}); repeat the command with access to PyPI\n"
    )


def test_the_real_auditor_has_these_options_and_this_format(tmp_path):
    """Without pins it sends no request."""
    (tmp_path / "none.txt").write_text("")
    assert list(audit.audit(tmp_path / "none.txt", ["PYSEC-2026-1"])) == []
    command = [sys.executable, "-m", "pip_audit", "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "--require-hashes" in printed


def test_each_accepted_vulnerability_is_of_a_pin_and_has_a_reason():
    files = [file for file in audit.FOLDER.glob("*.txt") if file.name != audit.ACCEPTED]
    pins = {line.split()[0] for file in files for line in file.read_text().splitlines() if line}
    lines = (audit.FOLDER / audit.ACCEPTED).read_text().splitlines()
    of_accepted = [line.split(maxsplit=2) for line in lines if not line.startswith("#")]
    assert of_accepted
    for identifier, pin, reason in of_accepted:
        assert re.fullmatch(r"(PYSEC|GHSA|CVE)-\S+", identifier)
        assert pin in pins
        assert len(reason) > 20 and reason.endswith("."), identifier
    identifiers = [identifier for identifier, *_ in of_accepted]
    assert sorted({*identifiers}) == sorted(identifiers) == sorted(audit.accepted(audit.FOLDER))
