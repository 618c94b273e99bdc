"""The targets of the Makefile that remove files, the files that they keep, and `make flink`."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.checkout import CHECKOUT
from tests.flink_jars import make_flink
from tests.waiting import wait

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
TOOLS = ("make", "rm", "mkdir", "mv", "touch", "sleep", "true")
JAR = "beam-runners-flink.jar"
JAVA = "#!/bin/sh\n"
MAVEN = f"""#!/bin/sh
for word; do case $word in -DoutputDirectory=*) folder=${{word#*=}};; esac; done
echo begin >>maven.log
mkdir -p $folder && touch $folder/{JAR} && sleep 0.2
echo end >>maven.log
"""
PYTHON = f"#!/bin/sh\nmkdir -p $3 && touch $3/$2-{JAR}\n"


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
        options = {"env": {**os.environ, "PATH": str(folder)}, "capture_output": True, "text": True}
        return make_flink(tmp_path, "PYTHON=true", f"BIN={folder}", **options)

    return function


def test_of_several_processes_one_downloads_the_jars_and_the_others_wait(machine, tmp_path):
    with ThreadPoolExecutor() as pool:
        first = pool.submit(machine, java=JAVA, mvn=MAVEN)
        wait((tmp_path / "maven.log").exists)
        others = [pool.submit(machine) for _ in range(2)]
        found = {each.result() for each in (first, *others)}
    [jars] = found
    assert [jar.name for jar in jars.iterdir()] == [JAR]
    assert (tmp_path / "maven.log").read_text().split() == ["begin", "end"]


def test_without_maven_the_jars_are_those_of_the_installed_beam(machine):
    [jar] = machine(java=JAVA, python=PYTHON).iterdir()
    assert jar.name == f"platforms.flink.jars-{JAR}"


def test_without_java_a_line_names_the_package(machine, tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as failed:
        machine(mvn=MAVEN)
    assert "java: not installed; Flink needs Java 11, 17 or 21" in failed.value.stderr
    assert "apt-get install openjdk-17-jre-headless" in failed.value.stderr
    assert not (tmp_path / "maven.log").exists()


@pytest.mark.parametrize("program", ["mvn", "python"])
def test_a_failed_download_leaves_no_jars_and_the_next_one_completes(machine, tmp_path, program):
    script = {"mvn": MAVEN, "python": PYTHON}[program]
    with pytest.raises(subprocess.CalledProcessError):
        machine(java=JAVA, **{program: f"{script}exit 1\n"})
    assert not (tmp_path / ".cache" / "flink").exists()
    assert list(machine(**{program: script}).iterdir())


def test_without_java_the_tests_on_flink_are_left_out_and_named(tmp_path):
    test = "tests/tools/test_flink_cluster.py"
    words = ["-n", "1", "-p", "no:cacheprovider", "-m", "slow", test]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=CHECKOUT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert line.endswith("the tests on Flink need java, which is not installed")
