"""Download Beam's job server without Maven: `python -m core.flink.jars FOLDER`.

The download is that of Beam's own FlinkRunner: one jar, with Flink inside, of the release of the
installed Beam.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from apache_beam.options.pipeline_options import FlinkRunnerOptions
from apache_beam.utils.subprocess_server import JavaJarServer

LINE = "1.19"
"""The line of Flink by default; every Beam that this package accepts has a job server for it."""


def download(folder: Path, repository: str, line: str = LINE) -> Path:
    """Download the jar into a folder, unless the folder contains it; return its path.

    Args:
      folder: the folder, which is created if it is missing.
      repository: URL of a Maven repository.
      line: the line of Flink, such as `2.0`.

    Raises:
      OSError, RuntimeError: it cannot be downloaded.
    """
    target = f"runners:flink:{line}:job-server:shadowJar"
    url = JavaJarServer.path_to_beam_jar(target, maven_repository_url=repository)
    return Path(JavaJarServer.local_jar(url, str(folder)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="value for beam.flink.jars; created if missing")
    parser.add_argument(
        "--repository",
        default=JavaJarServer.MAVEN_CENTRAL_REPOSITORY,
        metavar="URL",
        help="Maven repository [Maven Central]",
    )
    parser.add_argument(
        "--line",
        default=LINE,
        choices=FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS,
        help=f"line of Flink [{LINE}]",
    )
    arguments = parser.parse_args()
    try:
        print(download(arguments.folder, arguments.repository, arguments.line))
    except (OSError, RuntimeError) as error:
        print(
            f"Beam's job server for Flink cannot be downloaded: {error}; install Maven (Debian: "
            "apt-get install maven) and run make flink",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
