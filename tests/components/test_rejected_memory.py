"""ReviewExampleGen with hundreds of thousands of rejected lines: memory does not grow with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

LINES = 300_000
SCRIPT = """
import json, resource, sys
from pathlib import Path
from core.errors import InputError
from tests.components.example_gen import read_files
folder, error_text = Path(sys.argv[1]), ""
try:
    read_files(folder, folder / "in", max_rejected_fraction=0.01)
except InputError as error:
    error_text = str(error)
print(json.dumps([error_text, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def read(folder, lines):
    """Return the error of a process that reads these lines, and its peak memory in MiB."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.txt").write_text("".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_memory_does_not_grow_with_the_rejected_lines(tmp_path):
    good = [f"__label__{n % 2 + 1} Title: number {n} of all lines\n" for n in range(LINES)]
    bad = [f"there is no label in line {n} of them\n" for n in range(11, LINES + 1)]
    error_text, few = read(tmp_path / "few", good)
    assert error_text == ""
    error_text, many = read(tmp_path / "many", good[:10] + bad)
    assert f"{LINES - 10} of {LINES} lines (100.0%) cannot be used" in error_text
    shown = [f"a.txt:{n} bad_label (there is no label in line {n} of them)" for n in range(11, 16)]
    assert "; the first: " + "; ".join(shown) in error_text
    # In memory, each rejected line would take more than a kilobyte.
    assert many - few < LINES * 0.4 / 1024
