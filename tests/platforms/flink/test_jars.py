"""The jars of the job server: the download of the guide, and those that a job does not upload."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import apache_beam
import pytest

from platforms.flink import rest
from platforms.flink.job_server import _class_path
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


@pytest.fixture
def jars(tmp_path, monkeypatch):
    """A folder with the jar of a job server, which is in the class path of the cluster."""
    name = "beam-runners-flink-1.19-job-server-2.74.0.jar"
    content = json.dumps({"classpath": [f"/opt/flink/lib/{name}"]}).encode()
    monkeypatch.setattr(rest, "_call", lambda *_: content)
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / name).write_bytes(b"jar")
    return folder


@pytest.mark.parametrize("has_space", [True, False])
def test_a_job_server_without_space_for_its_jars_starts_with_those_of_their_folder(
    jars, tmp_path, monkeypatch, has_space
):
    def fail(source, target):
        raise OSError(28, "No space left on device", target)

    monkeypatch.setattr(os, "link", fail)
    if not has_space:
        monkeypatch.setattr(shutil, "copyfile", fail)
    scratch = tmp_path / "scratch"
    found = _class_path(str(jars), "jobmanager:8081", str(scratch))
    copies = [str(copy.parent / "*") for copy in scratch.rglob("*.jar")]
    assert [found] == (copies if has_space else [f"{jars}/*"])
    assert bool(copies) == has_space
