"""The stack that tools/install.py chooses, its errors, and that every installation is verified."""

import importlib.util
import os
import sys
import venv
from pathlib import Path

import pytest

from tools import environment, install
from tools.install import NEW, OLD, Choice, Interpreter, UnsuitableMachine, choose, missing

ACCEPTED = install.ROOT / "requirements" / "accepted-vulnerabilities.txt"


def interpreter(version: str, path: str = "", **differs: bool) -> Interpreter:
    major, minor, patch = map(int, version.split("."))
    found = Interpreter(path or f"/opt/{version}/bin/python", (major, minor, patch), *[True] * 3)
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
        ((2, 36), ["3.9.18", "3.14.0"], OLD, None),  # uv downloads an interpreter
        ((3, 0), ["3.9.18", "3.14.0"], NEW, None),
    ],
)
def test_newest_stack_that_an_interpreter_here_can_run(glibc, versions, stack, version):
    choice = chosen(glibc, *map(interpreter, versions))
    assert (choice.stack, choice.interpreter) == (stack, version and interpreter(version))
    assert str(choice).startswith(f"stack: tfx {stack.tfx} on Python {version or ''}")


def test_an_interpreter_with_headers_is_preferred_and_one_without_wheels_passed_over():
    bare, whole = interpreter("3.13.1", headers=False), interpreter("3.12.1")
    assert chosen((2, 41), bare, whole).interpreter == whole
    free_threaded, plain = interpreter("3.13.1", standard=False), interpreter("3.11.1")
    assert chosen((2, 41), free_threaded, plain).interpreter == plain


@pytest.mark.parametrize(
    ("system", "machine", "glibc", "message"),
    [
        ("Darwin", "arm64", None, "Linux only, this is Darwin"),
        ("Linux", "aarch64", (2, 41), "x86_64 only, this is aarch64"),
        ("Linux", "x86_64", None, "requires glibc"),
        ("Linux", "x86_64", (2, 17), "glibc 2.17 is older than 2.28"),
    ],
)
def test_the_error_of_an_unsuitable_machine_has_reason_and_remedy(system, machine, glibc, message):
    with pytest.raises(UnsuitableMachine, match=message) as error:
        choose(system, machine, glibc, [interpreter("3.10.13"), interpreter("3.12.1")])
    assert "Debian 13 or Ubuntu 24.04" in str(error.value)


def test_everything_that_is_missing_is_reported_at_once():
    choice = chosen((2, 41), interpreter("3.13.5"))
    assert missing(choice, True, choice.interpreter) == ""
    # uv downloads the interpreter.
    assert missing(chosen((2, 41)), True, interpreter("3.9.2")) == ""
    python = interpreter("3.13.5", path=os.path.realpath("/usr/bin/python3"), headers=False)
    text = missing(chosen((2, 41), python), False, None)
    packages = "python3-venv g++ python3-dev"
    assert text.splitlines()[-1] == f"Install it as root: apt-get install {packages}"
    assert "pyfarmhash" in text and python.path in text
    other = interpreter("3.12.1", headers=False)
    assert "python3.12-dev" in missing(chosen((2, 41), other), True, other)


def test_the_running_interpreter_is_found_and_a_failing_one_is_not(tmp_path: Path):
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert install.probe(str(shim)) is None
    assert install.probe(str(tmp_path / "absent")) is None
    found = install.find_interpreters()[0]
    assert found.path == os.path.realpath(sys.executable)  # .venv has a link to it
    assert found.version == sys.version_info[:3]


def test_uv_reaches_packages_as_pip_does_unless_it_is_set_up_itself():
    listing = (
        ":env:.cert='/own.pem'\nglobal.cert='/all.pem'\ninstall.index-url='mirror'\n"
        "global.default-timeout='180'\n"
    )
    env = environment.uv_environment({"PATH": "/bin", "VIRTUAL_ENV": "/other"}, listing)
    assert env == {
        "PATH": "/bin",
        "UV_DEFAULT_INDEX": "mirror",
        "SSL_CERT_FILE": "/own.pem",
        "UV_SYSTEM_CERTS": "true",
        "UV_HTTP_TIMEOUT": "180",
    }
    own = {"UV_INDEX_URL": "own", "SSL_CERT_FILE": "/mine.pem", "UV_HTTP_TIMEOUT": "9"}
    assert environment.uv_environment(own, listing) == {**own, "UV_SYSTEM_CERTS": "true"}


def test_the_python_of_an_activated_environment_is_the_one_that_it_was_created_from(tmp_path):
    venv.create(tmp_path / "venv", symlinks=False, with_pip=False)
    found = install.probe(str(tmp_path / "venv" / "bin" / "python"))
    assert found.path == install.probe(sys.executable).path
    assert not found.path.startswith(str(tmp_path))


def test_an_environment_of_conda_is_used_last_unless_the_user_names_it(monkeypatch):
    conda = interpreter("3.10.1", path=sys.executable, conda=True)
    other = interpreter("3.10.9", path="/opt/other")
    monkeypatch.setattr(install, "probe", lambda path: conda if path == conda.path else other)
    assert install.find_interpreters(with_this_python=False)[-1] == conda
    assert install.find_interpreters(with_this_python=True)[0] == conda


REQUIREMENTS = sorted({*(install.ROOT / "requirements").glob("*.txt")} - {ACCEPTED})


def pins(file: Path) -> list[str]:
    """Return each pin with its markers, without its hashes."""
    lines = file.read_text().splitlines()
    return [line.removesuffix(" \\") for line in lines if not line.startswith("    ")]


def test_each_accepted_vulnerability_is_of_a_pin_and_has_a_reason():
    pinned = {pin.partition(" ")[0] for file in REQUIREMENTS for pin in pins(file)}
    for line in ACCEPTED.read_text().splitlines():
        if not line.startswith("#"):
            _, pin, reason = line.split(" ", 2)
            assert pin in pinned and reason, line


@pytest.mark.parametrize("stack", [NEW, OLD])
def test_every_installation_verifies_hashes(tmp_path, monkeypatch, stack):
    commands = []

    def run(words, env=None):
        commands.append([*map(str, words)])
        if "venv" in commands[-1]:
            (Path(commands[-1][-1]) / "bin").mkdir(parents=True)

    for module in (environment, install):
        monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(environment, "UV_VENV", tmp_path / "uv")
    monkeypatch.setattr(install, "pip_settings", lambda: "")
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    python = interpreter(f"3.{stack.minors[0]}.0", path=sys.executable)
    install.install(Choice(stack, python, ""), python.path)
    of_uv, of_packages, of_ours = (words for words in commands if "install" in words)
    assert of_uv[-3:] == ["--require-hashes", "-r", str(install.ROOT / "requirements/uv.txt")]
    pinned = str(install.ROOT / stack.requirements)
    assert of_packages[-3:] == ["--require-hashes", "-r", pinned]
    assert "--no-deps" in of_ours
    for words in (of_packages, of_ours):
        assert words[words.index("--build-constraints") + 1] == pinned
    assert any(pin.startswith("setuptools==") for pin in pins(Path(pinned)))


def test_the_image_with_cuda_adds_packages_and_changes_none():
    added = pins(install.ROOT / "requirements" / "gpu-py311.txt")
    assert "nvidia-cudnn-cu12" in {pin.partition("==")[0] for pin in added}
    names = {pin.partition("==")[0] for pin in pins(install.ROOT / NEW.requirements)}
    assert names & {pin.partition("==")[0] for pin in added} == set()


def test_no_process_compiles_its_imports():
    """The bytecode of all modules is installed, also with PYTHONDONTWRITEBYTECODE."""
    package = Path(importlib.util.find_spec("tfx").origin).parent
    files = list(package.rglob("*.py"))
    assert len(files) > 500
    assert [f for f in files if not Path(importlib.util.cache_from_source(str(f))).exists()] == []
