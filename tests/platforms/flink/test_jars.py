"""The jar of the job server, from Maven and by Beam's own download from a local repository."""

import glob
import re
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apache_beam
import pytest

from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from platforms.flink.job_server import class_path

JOB = Path(__file__).with_name("flink_job.py")
RELEASE = f"beam-runners-flink-1.19-job-server/{apache_beam.__version__}"
JAR = f"{RELEASE.replace('/', '-')}.jar"


@pytest.fixture
def repository(tmp_path):
    """A Maven repository; yields its folder and its URL."""
    folder = tmp_path / "repository"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def download(folder: Path, url: str, *more: str) -> subprocess.CompletedProcess:
    words = ["-m", "platforms.flink.jars", str(folder), f"--repository={url}", *more]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True)


def publish(repository: Path, jars: Path) -> None:
    """Publish a job server that consists of `jars`, as one jar that refers to all of them."""
    folder = repository / "org" / "apache" / "beam" / RELEASE
    folder.mkdir(parents=True)
    path = " ".join(jar.as_uri() for jar in sorted(jars.glob("*.jar")))
    # A line of a manifest has at most 72 bytes; the next line continues it after a space.
    lines = [path[start : start + 60] for start in range(0, len(path), 60)]
    manifest = "Manifest-Version: 1.0\nClass-Path: " + "\n ".join(lines) + "\n"
    with zipfile.ZipFile(folder / JAR, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_job_runs_with_the_downloaded_job_server(repository, flink_jars, tmp_path):
    folder, url = repository
    publish(folder, flink_jars)
    downloaded = download(tmp_path / "jars", url)
    assert downloaded.stdout.strip() == str(tmp_path / "jars" / JAR)
    flink = {"jars": str(tmp_path / "jars"), "parallelism": 1}
    config = PipelineConfig.model_validate(
        {"paths": {"root": str(tmp_path)}, "beam": {"runner": "flink", "flink": flink}}
    )
    command = [sys.executable, str(JOB), "counts", str(tmp_path), *beam_args(config)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr[-2000:]
    assert (tmp_path / "a").read_text() == "2"


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


def test_a_release_that_is_missing_is_one_line(repository, tmp_path):
    failed = download(tmp_path / "jars", repository[1])
    assert failed.returncode == 1
    *_, last = failed.stderr.splitlines()
    assert "cannot be downloaded" in last
    assert JAR in last and "404" in last
    assert "install Maven" in last
    assert not list((tmp_path / "jars").glob("*.jar"))
