"""Download Beam's job server without Maven: `python -m platforms.flink.jars FOLDER`.

The download is that of Beam's own FlinkRunner: one jar, with Flink inside, of the release of the
installed Beam. FOLDER is a value for `beam.flink.jars`.
"""

from __future__ import annotations

import argparse
import sys

from apache_beam.options.pipeline_options import FlinkRunnerOptions
from apache_beam.utils.subprocess_server import JavaJarServer


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("folder", help="folder for the jar; created if missing")
    maven = JavaJarServer.MAVEN_CENTRAL_REPOSITORY
    add("--repository", default=maven, metavar="URL", help="Maven repository")
    # Every Beam that this package accepts has a job server for 1.19.
    versions = FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS
    add("--line", default="1.19", choices=versions, help="minor version of Flink")
    given = parser.parse_args()
    target = f"runners:flink:{given.line}:job-server:shadowJar"
    url = JavaJarServer.path_to_beam_jar(target, maven_repository_url=given.repository)
    try:
        print(JavaJarServer.local_jar(url, given.folder))
    except (OSError, RuntimeError) as error:
        sys.exit(
            f"Beam's job server for Flink cannot be downloaded: {error}; install Maven (Debian: "
            "apt-get install maven) and run make flink"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
