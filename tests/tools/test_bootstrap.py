"""The stack that tools/stacks.py chooses, and its errors if none can be installed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
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
@pytest.mark.parametrize("venv", [True, False])
def test_every_installation_verifies_hashes(tmp_path, monkeypatch, stack, venv):
    commands: list[list[str]] = []
    monkeypatch.setattr(
        bootstrap, "run", lambda words, env=None: commands.append([*map(str, words)])
    )
    monkeypatch.setattr(bootstrap, "UV", tmp_path / "uv" / "bin" / "uv")
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "STAMP", tmp_path / "installed.json")
    if venv:  # `pip config list` runs with it.
        (tmp_path / "uv" / "bin").mkdir(parents=True)
        monkeypatch.setattr(bootstrap.shutil, "rmtree", lambda *given, **options: None)
        (tmp_path / "uv" / "bin" / "python").symlink_to(sys.executable)
    python = interpreter(f"3.{stack.minors[0]}.0", path=sys.executable, venv=venv)
    bootstrap.install(Choice(stack, python, ""), python)
    of_uv, of_packages, of_ours = (words for words in commands if "install" in words)
    assert of_uv[-3:] == ["--require-hashes", "-r", str(bootstrap.ROOT / "requirements/uv.txt")]
    pinned = str(bootstrap.ROOT / stack.requirements)
    assert of_packages[-3:] == ["--require-hashes", "-r", pinned]
    assert "--no-deps" in of_ours
    for words in (of_packages, of_ours):
        assert words[words.index("--build-constraints") + 1] == pinned
    assert any(pin.startswith("setuptools==") for pin in pins(Path(pinned)))


def write_wheel(folder: Path) -> str:
    """Write the wheel of a package `tiny` 1.0 to a folder; return its hash."""
    file, info = folder / "tiny-1.0-py3-none-any.whl", "tiny-1.0.dist-info"
    contents = {
        "tiny.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*contents, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as wheel:
        for name, content in {**contents, f"{info}/RECORD": record}.items():
            wheel.writestr(name, content)
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("changed", [False, True])
def test_a_package_with_another_hash_is_not_installed(tmp_path, monkeypatch, changed):
    """By the real uv, with a folder in place of an index."""
    uv, run, pinned = bootstrap.UV, bootstrap.run, tmp_path / "pins.txt"
    if not uv.exists():
        pytest.skip("make install has not installed uv here")
    digest = write_wheel(tmp_path)
    pinned.write_text(f"tiny==1.0 \\\n    --hash=sha256:{'0' * 64 if changed else digest}\n")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setattr(bootstrap, "ensure_uv", lambda installer: ["true"])
    for name, path in {"VENV": "venv", "STAMP": "venv/installed.json", "LOG": "log"}.items():
        monkeypatch.setattr(bootstrap, name, tmp_path / path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bootstrap.VENV], check=True)
    bootstrap.STAMP.write_text(json.dumps({"interpreter": sys.executable}))

    def run_all_but_ours(words, env=None):
        if "-e" not in words:
            run(words, env)

    monkeypatch.setattr(bootstrap, "run", run_all_but_ours)
    python = interpreter("3.13.0", path=sys.executable)
    choice = Choice(NEW._replace(requirements=str(pinned)), python, "")
    if changed:
        with pytest.raises(bootstrap.InstallFailed, match="uv failed"):
            bootstrap.install(choice, python)
        assert "Hash mismatch for `tiny==1.0`" in bootstrap.LOG.read_text()
    else:
        bootstrap.install(choice, python)
    assert bool([*bootstrap.VENV.rglob("tiny.py")]) is not changed


def test_the_version_of_uv_is_that_of_its_pin():
    [pin] = pins(bootstrap.ROOT / bootstrap.UV_REQUIREMENTS)
    assert pin == f"uv=={bootstrap.uv_version()}"


@pytest.mark.parametrize("stack", [NEW, OLD])
def test_the_requirements_of_a_stack_name_its_tfx(stack):
    assert f"tfx=={stack.tfx}.0" in pins(bootstrap.ROOT / stack.requirements)


def test_the_image_with_cuda_adds_packages_and_changes_none():
    added = pins(bootstrap.ROOT / "requirements" / "gpu-py311.txt")
    assert "nvidia-cudnn-cu12" in {pin.partition("==")[0] for pin in added}
    names = {pin.partition("==")[0] for pin in pins(bootstrap.ROOT / NEW.requirements)}
    assert names & {pin.partition("==")[0] for pin in added} == set()


def test_no_process_compiles_its_imports():
    """The bytecode of all modules is installed, also with PYTHONDONTWRITEBYTECODE."""
    package = Path(importlib.util.find_spec("tfx").origin).parent
    files = list(package.rglob("*.py"))
    assert len(files) > 500
    assert [f for f in files if not Path(importlib.util.cache_from_source(str(f))).exists()] == []
