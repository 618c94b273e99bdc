"""Runs the product by its commands, as a user does, and reads what the commands write."""

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd

from pipeline.config import PipelineConfig
from pipeline.selected_nodes import node_ids
from tests.waiting import wait

COMMAND = str(Path(sys.executable).with_name("amazon-reviews"))
PIPELINE_NODES = tuple(node_ids(PipelineConfig()))
ALWAYS = {"ServedModel", "RunReport"}
"""The nodes that are never cached: TFX looks the baseline up, and each run has its own report."""


@dataclass
class Workspace:
    """A folder with the settings, the runs and the pushed models of one pipeline."""

    folder: Path
    settings: dict[str, Any]
    environ: dict[str, str] = field(default_factory=dict)
    """Further environment variables of every command."""

    def __post_init__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings = {"paths": {"root": str(self.root)}, **self.settings}
        self.config.write_text(yaml.safe_dump(self.settings))

    @property
    def config(self):
        return self.folder / "config.yaml"

    @property
    def root(self):
        return self.folder / "runs"

    @property
    def serving(self):
        return self.root / "serving"

    def env(self, overrides=""):
        environ = {name: value for name, value in os.environ.items() if name != "PIPELINE_SET"}
        return {
            **environ,
            **self.environ,
            "PIPELINE_CONFIG": str(self.config),
            **({"PIPELINE_SET": overrides} if overrides else {}),
            "COLUMNS": "200",
            "LOCAL_HOME": str(self.folder / "tfx_home"),
        }

    def command(self, *words, overrides="", stdin=""):
        return subprocess.run(
            [COMMAND, *words],
            env=self.env(overrides),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def run(self, overrides=""):
        return self.command("run", overrides=overrides)

    def report(self, output):
        """Return the page of which the output of `amazon-reviews run` has the path."""
        [path] = [
            line.split(maxsplit=1)[1] for line in output.splitlines() if line[:7] == "report "
        ]
        return Path(path).read_text(encoding="utf-8")

    def states(self, output):
        """Return component -> state, from the output of `amazon-reviews run`."""
        rows = [line.split() for line in output.splitlines() if line.endswith(" s")]
        return {row[0]: row[1] for row in rows}

    def store(self):
        config = mlmd.ConnectionConfig()
        config.sqlite.filename_uri = str(self.root / "metadata.sqlite")
        config.sqlite.connection_mode = mlmd.SqliteMetadataSourceConfig.READONLY
        return MetadataStore(config)

    def executions(self):
        """Return execution state -> the number of executions in ML Metadata."""
        states = mlmd.Execution.State.Name
        return Counter(states(e.last_known_state) for e in self.store().get_executions())

    def artifact_uri(self, kind):
        """Return the folder of the newest live artifact of a type."""
        artifacts = self.store().get_artifacts_by_type(kind)
        newest = max((a for a in artifacts if a.state == mlmd.Artifact.LIVE), key=lambda a: a.id)
        return Path(newest.uri)

    def pushed(self):
        return sorted(self.serving.iterdir()) if self.serving.exists() else []

    def run_and_kill(self, sign, overrides=""):
        """Kill a run as soon as `sign()` is true; return the output of the command."""
        run = Run(self, overrides)
        run.until(sign)
        return run.end(signal.SIGKILL, code=1)


class Run:
    """`amazon-reviews run`, started and not yet ended."""

    def __init__(self, workspace, overrides=""):
        self.printed = workspace.folder / "printed"
        with self.printed.open("w") as printed:
            self.process = subprocess.Popen(
                [COMMAND, "run"],
                env=workspace.env(overrides),
                cwd=workspace.folder,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def until(self, sign):
        def came():
            assert self.process.poll() is None, self.printed.read_text()
            return sign()

        wait(came, seconds=300)

    def end(self, number=signal.SIGINT, code=130):
        """Send a signal; return the output after the end of all processes of the run.

        SIGKILL is sent to the pipeline's process, and the command ends by itself.
        """
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in map(int, children) if number == signal.SIGKILL else [pid]:
            os.kill(each, number)
        assert self.process.wait(300) == code, self.printed.read_text()
        wait(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))
        printed = self.printed.read_text()
        assert "Traceback" not in printed
        return printed
