"""Look up the pins in the database of known vulnerabilities of PyPI: `python -m tools.audit`.

Exit codes: 0 no pin has a vulnerability without a written reason, 1 a pin has one, 2 a pin could
not be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "requirements"
ACCEPTED = "accepted-vulnerabilities.txt"
_AUDIT = (sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes")
_OUTPUT = ("--progress-spinner", "off", "--format", "json")


class NotLookedUp(Exception):
    """The auditor could not look up a pin. The message is one line."""


def accepted(folder: Path) -> list[str]:
    """Return the identifiers of the vulnerabilities that have a written reason."""
    lines = (folder / ACCEPTED).read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def audit(file: Path, ignored: list[str]) -> Iterator[str]:
    """Yield a line for each vulnerability of the pins in a file.

    Args:
      file: pins with hashes.
      ignored: identifiers of vulnerabilities.

    Raises:
      NotLookedUp: the database could not be reached, or has no record of a pin.
    """
    ignore = [f"--ignore-vuln={identifier}" for identifier in ignored]
    done = subprocess.run(
        [*_AUDIT, *_OUTPUT, *ignore, f"--requirement={file}"], capture_output=True, text=True
    )
    try:
        pins: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise NotLookedUp(f"pip-audit failed: {last}") from None
    skipped = [pin["skip_reason"] for pin in pins if "skip_reason" in pin]
    if skipped:
        raise NotLookedUp(f"{len(skipped)} of {len(pins)} pins in {file.name}: {skipped[0]}")
    for pin in pins:
        for each in pin["vulns"]:
            fixed = ", ".join(each["fix_versions"]) or "no version"
            yield f"{file.name}: {pin['name']}=={pin['version']}: {each['id']}, fixed in {fixed}"


def main(folder: Path = FOLDER) -> int:
    found = 0
    # The file with the fewest pins first, so that a missing database is an error after seconds.
    files = sorted(folder.glob("*.txt"), key=lambda file: file.stat().st_size)
    for file in files:
        if file.name == ACCEPTED:
            continue
        try:
            for line in audit(file, accepted(folder)):
                print(line, flush=True)
                found += 1
        except NotLookedUp as error:
            print(
                f"make audit: the pins could not be looked up in the database of vulnerabilities "
                f"({error}); repeat the command with access to PyPI",
                file=sys.stderr,
            )
            return 2
    if found:
        print(
            f"make audit: {found} known vulnerabilities; update the pins, or write a reason into "
            f"requirements/{ACCEPTED}",
            file=sys.stderr,
        )
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
