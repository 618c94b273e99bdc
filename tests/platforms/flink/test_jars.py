"""The jars of the job server, from Maven and by the download of the guide."""

import glob
import re
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import apache_beam
import pytest

from platforms.flink.job_server import class_path
from tests.checkout import CHECKOUT

GUIDE = CHECKOUT / "docs" / "how-to" / "flink.md"


def services(jar):
    """Service -> the classes that a jar registers for it."""
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if re.match(r"META-INF/services/\w", name)]
        return {
            name.rpartition("/")[2]: {
                line for line in archive.read(name).decode().split() if not line.startswith("#")
            }
            for name in names
        }


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_the_job_server_of_maven_is_one_jar_with_all_services(flink_jars):
    [jar] = glob.glob(class_path(str(flink_jars)))
    found = services(jar)
    assert found["org.apache.beam.sdk.options.PipelineOptionsRegistrar"]
    for single in flink_jars.glob("*.jar"):
        for name, classes in services(single).items():
            assert classes <= found[name], single


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
