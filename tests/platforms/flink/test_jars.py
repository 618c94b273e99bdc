"""The jar of the job server, by the download of the guide."""

import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import apache_beam

from tests.checkout import CHECKOUT

GUIDE = CHECKOUT / "docs" / "how-to" / "flink.md"


def test_the_download_of_the_guide(tmp_path):
    [program] = re.findall(
        r"^python - FOLDER 1.19 <<'END'\n(.*?)^END$", GUIDE.read_text(), re.M | re.S
    )
    name = f"beam-runners-flink-2.0-job-server-{apache_beam.__version__}.jar"
    release = tmp_path / "org/apache/beam/beam-runners-flink-2.0-job-server"
    (release / apache_beam.__version__).mkdir(parents=True)
    (release / apache_beam.__version__ / name).write_bytes(b"jar")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"maven_repository_url='http://127.0.0.1:{server.server_port}'"
        program = program.replace('shadowJar")', f'shadowJar", {url})')
        words = [sys.executable, "-c", program, str(tmp_path / "jars"), "2.0"]
        done = subprocess.run(words, capture_output=True, text=True)
        server.shutdown()
        thread.join()
    assert done.stdout.strip() == str(tmp_path / "jars" / name), done.stderr
    assert (tmp_path / "jars" / name).read_bytes() == b"jar"
