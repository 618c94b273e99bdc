"""Write dist/NAME.cdx.json: `python -m tools.sbom [IMAGE]`, without an image for the package.

`make sbom` calls it. The packages of an image are listed by its own Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tools.sbom import bill, collect

DIST = Path("dist")


def main(image: str = "") -> None:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    if image:
        found = collected_in(image)
        name = f"{collect.ROOT}-image-{image.rpartition('/')[2].replace(':', '-')}"
        document = bill.image_bill(found, image, revision_of(image), epoch)
    else:
        found = {"python": collect.python_packages()}
        version, tfx = (found["python"][each]["version"] for each in (collect.ROOT, "tfx"))
        name = f"{collect.ROOT}-{version}-tfx-{tfx}"
        document = bill.package_bill(found, epoch)
    DIST.mkdir(exist_ok=True)
    file = DIST / f"{name}.cdx.json"
    file.write_text(document, encoding="utf-8")
    print(file)


def collected_in(image: str) -> dict[str, Any]:
    """Run `collect` in a container of an image, with docker or buildah."""
    source = Path(collect.__file__).read_text(encoding="utf-8")
    if shutil.which("docker"):
        run = ["docker", "run", "--rm", "--network=none", "--entrypoint=python", image]
        return _json([*run, "-c", source])
    container = _output(["buildah", "from", image]).strip()
    try:
        return _json(["buildah", "run", "--network=none", container, "--", "python", "-c", source])
    finally:
        _output(["buildah", "rm", container])


def revision_of(image: str) -> str:
    """Return the commit in the label of an image; `unknown` without the label."""
    label = f'{{{{index .%s.Labels "{bill.REVISION}"}}}}'
    if shutil.which("docker"):
        inspect = ["docker", "image", "inspect", "--format", label % "Config", image]
    else:
        inspect = ["buildah", "inspect", "--type=image", "--format", label % "OCIv1.Config", image]
    return _output(inspect).strip() or "unknown"


def _json(command: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_output(command))
    return found


def _output(command: list[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
