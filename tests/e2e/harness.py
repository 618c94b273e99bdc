"""Runs the product by its commands, as a user does, and reads what the commands write."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd

from pipeline.config import PipelineConfig
from pipeline.nodes import node_ids

COMMAND = str(Path(sys.executable).with_name("amazon-reviews"))
PIPELINE_NODES = tuple(node_ids(PipelineConfig()))
ALWAYS = {"LatestBlessedModel", "RunReport"}
"""The nodes that are never cached: TFX looks the baseline up, and each run has its own report."""
REPORT_ARTIFACTS = dict.fromkeys(
    ("components.Report", "components.KeyFigures", "components.Classification"), 1
)
"""Type -> number of the artifacts that each run adds."""


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
        return {
            **os.environ,
            **self.environ,
            "PIPELINE_CONFIG": str(self.config),
            "PIPELINE_SET": overrides,
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

    def start(self, overrides=""):
        """Start `amazon-reviews run`; its output has both streams."""
        return subprocess.Popen(
            [COMMAND, "run"],
            env=self.env(overrides),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

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

    def artifacts(self):
        """Return artifact type -> the number of live artifacts in ML Metadata."""
        store = self.store()
        names = {kind.id: kind.name for kind in store.get_artifact_types()}
        live = [a for a in store.get_artifacts() if a.state == mlmd.Artifact.LIVE]
        return Counter(names[artifact.type_id] for artifact in live)

    def artifact_uri(self, kind):
        """Return the folder of the newest live artifact of a type."""
        artifacts = self.store().get_artifacts_by_type(kind)
        newest = max((a for a in artifacts if a.state == mlmd.Artifact.LIVE), key=lambda a: a.id)
        return Path(newest.uri)

    def pushed(self):
        return sorted(self.serving.iterdir()) if self.serving.exists() else []

    def run_and_kill(self, sign, overrides="", seconds=300):
        """Start a run, and kill the pipeline's process with SIGKILL as soon as `sign()` is true.

        Return the output of the command, which must end by itself.
        """
        command = self.start(overrides)
        deadline = time.monotonic() + seconds
        while not sign():
            assert command.poll() is None, command.communicate()[0]
            assert time.monotonic() < deadline, "the condition for the kill was never true"
            time.sleep(0.05)
        for child in _children(command.pid):
            os.kill(child, signal.SIGKILL)
        output, _ = command.communicate(timeout=300)
        assert command.returncode == 1
        return output


def _children(pid):
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]
