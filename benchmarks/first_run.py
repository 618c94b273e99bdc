"""Show which parts the first `make run` on a machine has, in a new clone of this repository.

    python -m benchmarks.first_run [--cold] [--scratch FOLDER] [--json FILE]

HEAD is cloned into a temporary folder. There `make install` and then `amazon-reviews run` are run,
which is what `make run` does. With --cold the caches of uv and pip are new and empty, so that every
package is downloaded (1 GB) and built; otherwise they are those of this user. Python itself is
downloaded only if no interpreter is suitable.

The parts of the installation are recognised by the lines of its log, at the moment when they are
written. The column "whose" names what determines the part: the network, the programs that we
start (uv, pip), or our own code and decisions. uv builds packages during the downloads; the part
"build, after the downloads" is only what remains then. CPU seconds miss processes that end within a
quarter of a second. Seconds depend on the machine, its network and its load.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Column, Table

from benchmarks import usage
from core.overrides import OPTION

_LOG = ".cache/install.log"
_SECONDS_BETWEEN_SAMPLES = 0.25
_COMMANDS = (
    (
        re.compile(r"^\$ .* (-m venv|pip install) .*(\.cache/uv|/requirements/uv\.txt)"),
        "install uv",
    ),
    (re.compile(r"^\$ .*uv venv "), "create .venv"),
    (re.compile(r"^\$ .*uv pip install .* -r "), "resolve"),
    (re.compile(r"^\$ .*uv pip install .* -e "), "install this package"),
)
"""The first line of each command of the bootstrap -> the part that it starts."""
_PARTS = (
    (re.compile(r"^Resolved "), "download"),
    (re.compile(r"^Prepared "), "link the files"),
    (re.compile(r"^Installed "), "compile bytecode"),
    (re.compile(r"^Bytecode compiled "), "between the commands"),
)
"""A line that uv writes at the end of a part -> the next part."""
_WHOSE = {
    "start, choose an interpreter": "ours",
    "install uv": "pip, network",
    "create .venv": "uv",
    "resolve": "uv, network",
    "download": "network",
    "build, after the downloads": "the compiler",
    "link the files": "uv",
    "compile bytecode": "ours",
    "between the commands": "ours",
    "install this package": "ours",
    "run: imports before the first component": "ours",
    "run: components": "ours",
    "run: between components, end": "ours",
}


class Line(NamedTuple):
    """A line of a log, and the time when it was written, in seconds since the epoch."""

    time: float
    text: str


class Part(NamedTuple):
    """A part of the first run, between two times."""

    name: str
    start: float
    end: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cold", action="store_true", help="start with empty caches")
    parser.add_argument("--json", type=Path, help="output file for the figures")
    parser.add_argument("--scratch", help="folder for temporary files (7 GB with --cold)")
    arguments = parser.parse_args()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        clone = Path(folder) / "clone"
        _git_clone(clone)
        environment = _environment(Path(folder) if arguments.cold else None)
        cpu_time = usage.CpuTime()
        console.print("make install …")
        start = time.time()
        lines = _follow(["make", "install"], clone, environment, cpu_time)
        end = time.time()
        console.print("amazon-reviews run …")
        parts = [*install_parts(lines, start, end), *_run(clone, environment, cpu_time)]
        figures = [
            {
                "part": name,
                "whose": _WHOSE[name],
                "s": sum(part.end - part.start for part in parts if part.name == name),
                "cpu": sum(
                    cpu_time.seconds(part.start, part.end) for part in parts if part.name == name
                ),
            }
            for name in dict.fromkeys(part.name for part in parts)
        ]
    console.print(table(figures))
    for name, seconds in build_seconds(lines).items():
        console.print(f"built from source: {name}, {seconds:.1f} s")
    caches = "empty caches" if arguments.cold else "the caches of this user"
    console.print(f"{caches}, {usage.cores()} CPUs, Python {platform.python_version()}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _git_clone(folder: Path) -> None:
    source = str(usage.REPOSITORY)
    subprocess.run(["git", "clone", "--quiet", "--local", source, str(folder)], check=True)


def _environment(caches: Path | None) -> Mapping[str, str]:
    """Return the environment of a new shell, without this program's virtual environment.

    Args:
      caches: the folder for new caches; None: the caches of this user.
    """
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PIPELINE_CONFIG", "PIPELINE_SET")
    found = {name: value for name, value in os.environ.items() if name not in hidden}
    own = os.path.join(sys.prefix, "bin")
    paths = os.environ["PATH"].split(os.pathsep)
    if sys.prefix != sys.base_prefix:
        paths = [path for path in paths if os.path.realpath(path) != os.path.realpath(own)]
    found["PATH"] = os.pathsep.join(paths)
    if caches:
        found |= {"UV_CACHE_DIR": str(caches / "uv"), "PIP_CACHE_DIR": str(caches / "pip")}
    return found


def _follow(
    command: Sequence[str],
    clone: Path,
    environment: Mapping[str, str],
    cpu_time: usage.CpuTime,
    each_time: Callable[[], None] = lambda: None,
) -> list[Line]:
    """Run a command; return the lines that it adds to the log of the installation.

    Raises:
      SystemExit: the command failed; the message has its output.
    """
    lines: list[Line] = []
    log, position = clone / _LOG, 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=clone, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        running = True
        while running:
            running = process.poll() is None
            cpu_time.sample(process.pid)
            if log.exists():
                with log.open("rb") as stream:
                    stream.seek(position)
                    new = stream.read()
                # The last line may be incomplete.
                complete = new[: new.rfind(b"\n") + 1]
                position += len(complete)
                now = time.time()
                lines += [
                    Line(now, text) for text in complete.decode(errors="replace").splitlines()
                ]
            if running:
                time.sleep(_SECONDS_BETWEEN_SAMPLES)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{output.read()}")
    return lines


def install_parts(lines: Sequence[Line], start: float, end: float) -> list[Part]:
    """Return the parts of an installation, without gaps, from `start` to `end`."""
    marks = [(start, "start, choose an interpreter")]
    command = ""
    for line in lines:
        if line.text.startswith("$ "):
            found = [name for pattern, name in _COMMANDS if pattern.search(line.text)]
            command = found[0] if found else "between the commands"
            marks.append((line.time, command))
        elif command == "resolve":
            marks += [(line.time, name) for pattern, name in _PARTS if pattern.search(line.text)]
    ends = [time for time, _ in marks[1:]] + [end]
    parts = [Part(name, begin, last) for (begin, name), last in zip(marks, ends, strict=True)]
    downloaded = [line.time for line in lines if line.text.lstrip().startswith("Downloaded ")]
    return [piece for part in parts for piece in _without_builds(part, downloaded)]


def _without_builds(part: Part, downloaded: Sequence[float]) -> list[Part]:
    """Divide the part "download" at the end of the last download."""
    if part.name != "download":
        return [part]
    middle = max((moment for moment in downloaded if moment <= part.end), default=part.start)
    return [
        Part("download", part.start, middle),
        Part("build, after the downloads", middle, part.end),
    ]


def build_seconds(lines: Sequence[Line]) -> dict[str, float]:
    """Return the seconds of each package that uv built from source."""
    started = {}
    found = {}
    for moment, text in lines:
        words = text.split()
        if words[:1] == ["Building"]:
            started[words[1]] = moment
        elif words[:1] == ["Built"] and words[1] in started:
            found[words[1]] = moment - started[words[1]]
    return found


def _run(clone: Path, environment: Mapping[str, str], cpu_time: usage.CpuTime) -> list[Part]:
    """Run the sample pipeline in the clone; return its parts."""
    from pipeline.config import load_config
    from platforms.local import runs

    root = f"paths.root={clone / 'runs'}"
    start = time.time()
    command = str(clone / ".venv" / "bin" / "amazon-reviews")
    _follow([command, "run", OPTION, root], clone, environment, cpu_time)
    end = time.time()
    run = runs.find_run(load_config(None, [root]), None)
    steps = [(run.started + step.started, step.seconds) for step in run.steps]
    first = min(begin for begin, _ in steps)
    components = [Part("run: components", begin, begin + seconds) for begin, seconds in steps]
    marks = [first, *(moment for part in components for moment in part[1:]), end]
    pauses = [
        Part("run: between components, end", begin, max(begin, last))
        for begin, last in zip(marks[2::2], marks[3::2], strict=True)
    ]
    return [Part("run: imports before the first component", start, first), *components, *pauses]


def table(figures: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of the parts, and of the sum of those that are not the network's."""
    drawn = Table(
        "part", "whose", *[Column(title, justify="right") for title in ("s", "CPU s", "of all")]
    )
    whole = sum(each["s"] for each in figures)

    def add(name: str, whose: str, chosen: Sequence[Mapping[str, Any]]) -> None:
        seconds, cpu = (sum(each[key] for each in chosen) for key in ("s", "cpu"))
        drawn.add_row(name, whose, f"{seconds:.1f}", f"{cpu:.1f}", f"{seconds / whole:.0%}")

    for each in figures:
        add(each["part"], each["whose"], [each])
    drawn.add_section()
    add("all", "", figures)
    add("all that is ours", "ours", [each for each in figures if each["whose"] == "ours"])
    return drawn


if __name__ == "__main__":
    main()
