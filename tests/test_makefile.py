"""The targets of the Makefile that remove files, the files that they keep, and `make flink`."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.checkout import CHECKOUT

MAKEFILE = CHECKOUT / "Makefile"
MODELS = ("runs/serving/17", "runs/amazon/serving/18")
KEPT = (
    *(f"{model}/saved_model.pb" for model in MODELS),
    ".venv/pyvenv.cfg",
    "cli/app.py",
    "data/train.bz2",
)
REMOVED = ("build/lib/a.py", "site/index.html", ".ruff_cache/a", "pipeline/__pycache__/cli.pyc")


def make(folder, target):
    done = subprocess.run(
        ["make", "-f", str(MAKEFILE), target], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    for name in (*KEPT, *REMOVED):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return tmp_path


def test_clean_keeps_the_runs_and_their_models(checkout):
    make(checkout, "clean")
    assert all((checkout / name).exists() for name in KEPT)
    assert not any((checkout / name).exists() for name in REMOVED)
    make(checkout, "distclean")
    assert all((checkout / model / "saved_model.pb").exists() for model in MODELS)
    assert not (checkout / ".venv").exists()


def test_clean_runs_prints_what_it_removes(checkout):
    printed = make(checkout, "clean-runs")
    assert "removing runs: " in printed
    models = [line for line in printed.splitlines() if "pushed model" in line]
    assert models == [f"removing the pushed model {model}" for model in MODELS]
    assert not (checkout / "runs").exists()
    assert all((checkout / name).exists() for name in KEPT[len(MODELS) :])
    assert "nothing to remove" in make(checkout, "clean-runs")


# `make flink` with programs in place of Java, of Maven and of the Python of .venv.
TOOLS = ("flock", "make", "mkdir", "mv", "rm", "sed", "sleep", "touch", "true")
JAR = "beam-runners-flink.jar"
JAVA = "#!/bin/sh\n"
MAVEN = f"""#!/bin/sh
for word; do case $word in -DoutputDirectory=*) folder=${{word#*=}};; esac; done
mkdir -p $folder && touch $folder/{JAR}
"""
PYTHON = f"#!/bin/sh\nmkdir -p $3 && touch $3/of-beam-{JAR}\n"


@pytest.fixture
def machine(tmp_path):
    """Return a function that runs `make flink` on a machine with these programs."""
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "kubeflow" / "flink").mkdir(parents=True)
    (tmp_path / "kubeflow" / "flink" / "pom.xml").touch()
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name))

    def function(**programs):
        for name, script in programs.items():
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        environ = {**os.environ, "PATH": str(folder)}
        words = ["make", "--silent", "PYTHON=true", f"BIN={folder}", "flink"]
        done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True)
        jars = tmp_path / ".cache" / "flink"
        return done, [jar.name for jar in jars.glob("lib/*")] if jars.exists() else None

    return function


def test_without_java_a_line_names_the_package(machine):
    done, jars = machine(mvn=MAVEN)
    assert (done.returncode, jars) == (2, None)
    assert "java: not installed; Flink needs Java 11, 17 or 21" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr


# Without Maven the jars are those of the installed Beam.
@pytest.mark.parametrize(
    ("program", "script", "jar"), [("mvn", MAVEN, JAR), ("python", PYTHON, f"of-beam-{JAR}")]
)
def test_a_failed_download_leaves_no_jars_and_the_next_one_completes(machine, program, script, jar):
    done, jars = machine(java=JAVA, **{program: f"{script}exit 1\n"})
    assert (done.returncode, jars) == (2, None)
    done, jars = machine(**{program: script})
    assert (done.returncode, jars) == (0, [jar])


def test_two_downloads_at_once_leave_all_jars(machine):
    slow = f"{MAVEN}sleep 1\ntouch $folder/second-{JAR}\n"
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(machine, java=JAVA, mvn=slow) for _ in range(2)]
    for run in runs:
        done, jars = run.result()
        assert done.returncode == 0, done.stderr
        assert sorted(jars) == [JAR, f"second-{JAR}"]
