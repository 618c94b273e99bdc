"""The jar of the job server, by the download of the guide."""

import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import apache_beam
import pytest

from tests.checkout import CHECKOUT
from tests.waiting import in_background

GUIDE = CHECKOUT / "docs" / "how-to" / "flink.md"


@pytest.mark.slow
def test_the_download_of_the_guide(tmp_path):
    [program] = re.findall(
        r"^python - FOLDER 1.19 <<'END'\n(.*?)^END$", GUIDE.read_text(), re.M | re.S
    )
    artifact, version = "beam-runners-flink-2.0-job-server", apache_beam.__version__
    name = f"{artifact}-{version}.jar"
    release = tmp_path / "org/apache/beam" / artifact / version
    release.mkdir(parents=True)
    (release / name).write_bytes(b"jar")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        in_background(server.serve_forever)
        url = f"maven_repository_url='http://127.0.0.1:{server.server_port}'"
        program = program.replace('shadowJar")', f'shadowJar", {url})')
        words = [sys.executable, "-c", program, str(tmp_path / "jars"), "2.0"]
        done = subprocess.run(words, capture_output=True, text=True)
        server.shutdown()
    assert done.stdout.strip() == str(tmp_path / "jars" / name), done.stderr
    assert (tmp_path / "jars" / name).read_bytes() == b"jar"
