"""The stack that tools/stacks.py chooses, and its errors if none can be installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bootstrap, stacks
from tools.stacks import NEW, OLD, Choice, Interpreter, UnsuitableMachine, choose, missing

ACCEPTED = bootstrap.ROOT / "requirements" / "accepted-vulnerabilities.txt"


def interpreter(version: str, path: str = "", **differs: bool) -> Interpreter:
    major, minor, patch = map(int, version.split("."))
    found = Interpreter(path or f"/opt/{version}/bin/python", (major, minor, patch), *[True] * 4)
    return found._replace(**differs)


def chosen(glibc: tuple[int, int], *interpreters: Interpreter) -> Choice:
    return choose("Linux", "x86_64", glibc, interpreters)


@pytest.mark.parametrize(
    ("glibc", "versions", "stack", "version"),
    [
        ((2, 36), ["3.11.7", "3.13.0", "3.10.13"], OLD, "3.10.13"),
        ((2, 38), ["3.12.1", "3.10.13"], OLD, "3.10.13"),
        ((2, 39), ["3.12.3"], NEW, "3.12.3"),
        ((2, 41), ["3.10.13", "3.11.7"], NEW, "3.11.7"),
        ((2, 41), ["3.14.0", "3.12.1", "3.13.5"], NEW, "3.12.1"),  # the first found, not the newest
        ((2, 41), ["3.14.0", "3.10.13"], OLD, "3.10.13"),  # installed before downloaded
    ],
)
def test_newest_stack_that_an_interpreter_here_can_run(glibc, versions, stack, version):
    choice = chosen(glibc, *map(interpreter, versions))
    assert choice.stack is stack
    assert choice.interpreter == interpreter(version)


@pytest.mark.parametrize(("glibc", "stack"), [((2, 36), OLD), ((2, 39), NEW), ((3, 0), NEW)])
def test_uv_downloads_an_interpreter_if_none_fits(glibc, stack):
    choice = chosen(glibc, interpreter("3.9.18"), interpreter("3.14.0"))
    assert (choice.stack, choice.interpreter) == (stack, None)
    assert "which uv downloads" in str(choice)


def test_an_interpreter_with_headers_is_preferred():
    bare, whole = interpreter("3.13.1", headers=False), interpreter("3.12.1")
    assert chosen((2, 41), bare, whole).interpreter == whole


def test_an_interpreter_without_wheels_is_passed_over():
    free_threaded, plain = interpreter("3.13.1", standard=False), interpreter("3.11.1")
    assert chosen((2, 41), free_threaded, plain).interpreter == plain


def test_the_choice_is_one_line_with_the_reason():
    choice = chosen((2, 36), interpreter("3.10.13"))
    assert str(choice) == (
        "stack: tfx 1.16 on Python 3.10.13 (glibc 2.36 is older than 2.39, which tfx 1.21 requires)"
    )


@pytest.mark.parametrize(
    ("system", "machine", "glibc", "message"),
    [
        ("Darwin", "arm64", None, "Linux only, this is Darwin"),
        ("Windows", "AMD64", None, "Linux only, this is Windows"),
        ("Linux", "aarch64", (2, 41), "x86_64 only, this is aarch64"),
        ("Linux", "x86_64", None, "requires glibc"),
        ("Linux", "x86_64", (2, 17), "glibc 2.17 is older than 2.28"),
    ],
)
def test_the_error_of_an_unsuitable_machine_has_reason_and_remedy(system, machine, glibc, message):
    with pytest.raises(UnsuitableMachine, match=message) as error:
        choose(system, machine, glibc, [interpreter("3.10.13"), interpreter("3.12.1")])
    assert "Debian 13 or Ubuntu 24.04" in str(error.value)


def test_nothing_is_missing_on_a_complete_machine():
    choice = chosen((2, 41), interpreter("3.13.5"))
    assert missing(choice, True, choice.interpreter, "apt-get") == ""


def test_everything_that_is_missing_is_reported_at_once():
    python = interpreter("3.13.5", path=os.path.realpath("/usr/bin/python3"), headers=False)
    text = missing(chosen((2, 41), python), False, None, "apt-get")
    assert text.splitlines()[-1] == (
        "Install it as root: apt-get install python3-venv g++ python3-dev"
    )
    assert "pyfarmhash" in text and python.path in text
    rpm = missing(chosen((2, 41), python), False, None, "dnf").splitlines()[-1]
    assert rpm == "Install it as root: dnf install python3-pip gcc-c++ python3-devel"


def test_headers_of_another_interpreter_have_a_versioned_package():
    python = interpreter("3.12.1", headers=False)
    assert "python3.12-dev" in missing(chosen((2, 41), python), True, python, None)


def test_a_downloaded_interpreter_has_its_headers():
    choice = chosen((2, 41))
    assert missing(choice, True, interpreter("3.9.2"), None) == ""


def test_the_running_interpreter_is_found_and_a_failing_one_is_not(tmp_path: Path):
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert stacks.probe(str(shim)) is None
    assert stacks.probe(str(tmp_path / "absent")) is None
    found = stacks.find_interpreters()[0]
    assert found.path == os.path.realpath(sys.executable)
    assert found.version == sys.version_info[:3]


def test_pip_settings_take_the_environment_over_the_files():
    listing = ":env:.cert='/own.pem'\nglobal.cert='/all.pem'\ninstall.index-url='mirror'\n"
    assert bootstrap.pip_settings(listing) == {"cert": "/own.pem", "index-url": "mirror"}


def test_uv_reaches_packages_as_pip_does_unless_it_is_set_up_itself():
    pip = {"index-url": "mirror", "cert": "/all.pem", "default-timeout": "180"}
    env = bootstrap.uv_environment({"PATH": "/bin", "VIRTUAL_ENV": "/other"}, pip)
    assert env == {
        "PATH": "/bin",
        "UV_DEFAULT_INDEX": "mirror",
        "SSL_CERT_FILE": "/all.pem",
        "UV_SYSTEM_CERTS": "true",
        "UV_HTTP_TIMEOUT": "180",
    }
    own = {"UV_INDEX_URL": "own", "SSL_CERT_FILE": "/own.pem", "UV_HTTP_TIMEOUT": "9"}
    assert bootstrap.uv_environment(own, pip) == {**own, "UV_SYSTEM_CERTS": "true"}


def test_a_venv_without_its_interpreter_or_its_stamp_counts_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "STAMP", tmp_path / "installed.json")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert bootstrap.read_stamp() == {}  # killed before the end
    bootstrap.STAMP.write_text(json.dumps({"digest": "d"}))
    assert bootstrap.read_stamp() == {"digest": "d"}
    bootstrap.STAMP.write_text("{")
    assert bootstrap.read_stamp() == {}
    bootstrap.STAMP.write_text(json.dumps({"digest": "d"}))
    python.unlink()
    python.symlink_to(tmp_path / "removed")
    assert bootstrap.read_stamp() == {}


REQUIREMENTS = sorted({*(bootstrap.ROOT / "requirements").glob("*.txt")} - {ACCEPTED})


def pins(file: Path) -> dict[str, list[str]]:
    """Return the lines of a file: each pin with its markers -> its hashes."""
    found: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        line = line.removesuffix(" \\")
        if not line.startswith("    "):
            hashes = found[line] = []
        else:
            hashes.append(line.strip())
    return found


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.name)
def test_requirements_are_pins_with_hashes_and_nothing_else(file: Path):
    for pin, hashes in pins(file).items():
        name, version, rest = re.fullmatch(r"([\w-]+)==([\w.]+)( ; .+)?", pin).groups()
        assert name and version and "://" not in (rest or ""), pin
        assert hashes, pin
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes), pin


@pytest.mark.parametrize("stack", [NEW, OLD])
def test_the_requirements_of_a_stack_name_its_tfx(stack):
    assert f"tfx=={stack.tfx}.0" in pins(bootstrap.ROOT / stack.requirements)


def test_the_image_with_cuda_adds_packages_and_changes_none():
    added = pins(bootstrap.ROOT / "requirements" / "gpu-py311.txt")
    assert "nvidia-cudnn-cu12" in {pin.partition("==")[0] for pin in added}
    names = {pin.partition("==")[0] for pin in pins(bootstrap.ROOT / NEW.requirements)}
    assert names & {pin.partition("==")[0] for pin in added} == set()


@pytest.mark.slow
@pytest.mark.both_stacks
def test_no_run_compiles_its_imports():
    """The bytecode of what a run imports is installed, also with PYTHONDONTWRITEBYTECODE."""
    listing = (
        "import sys, json, pipeline.pipeline\n"
        "files = [getattr(m, '__file__', None) for m in list(sys.modules.values())]\n"
        "print(json.dumps([f for f in files if f and f.endswith('.py')]))"
    )
    command = [sys.executable, "-c", listing]
    done = subprocess.run(command, cwd=bootstrap.ROOT, check=True, capture_output=True, text=True)
    files = [f for f in json.loads(done.stdout.splitlines()[-1]) if "/site-packages/" in f]
    assert len(files) > 3000
    missing = [f for f in files if not Path(importlib.util.cache_from_source(f)).exists()]
    # tools/bytecode.py does not find modules that are imported by a computed name.
    assert len(missing) < 0.03 * len(files), missing
