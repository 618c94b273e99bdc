"""The cache hits of ReviewExampleGen, in runs of the local engine on changing files."""

import json
from pathlib import Path

import pytest
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline

from components.artifacts import RejectedLines
from components.review_example_gen.component import ReviewExampleGen
from pipeline.config import load_config
from pipeline.inputs import example_gen_options, input_fingerprint

pytestmark = pytest.mark.slow


def run(folder, base):
    """Run a pipeline of ReviewExampleGen alone; return state and Examples of the execution."""
    data = f"{{input_base: '{base}', splits: {{train: '**/*.csv'}}}}"
    config = load_config(environ={"PIPELINE_SET": f"data={data}"})
    options = example_gen_options(config, input_fingerprint(config))
    metadata = sqlite_metadata_connection_config(str(folder / "metadata.sqlite"))
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="cache",
            pipeline_root=str(folder / "root"),
            components=[ReviewExampleGen(str(base), options)],
            enable_cache=True,
            metadata_connection_config=metadata,
        )
    )
    store = MetadataStore(metadata)
    execution = max(store.get_executions(), key=lambda item: item.id)
    events = store.get_events_by_execution_ids([execution.id])
    artifacts = store.get_artifacts_by_id([event.artifact_id for event in events])
    [rejected] = [item for item in artifacts if item.type == RejectedLines.TYPE_NAME]
    counts = json.loads(Path(rejected.uri, "summary.json").read_text())
    state = mlmd.Execution.State.Name(execution.last_known_state)
    return state, sum(n for name, n in counts.items() if name.startswith("examples/"))


def reviews(first, count):
    return "".join(f"{1 + i % 2},title {i},text {i}\n" for i in range(first, first + count))


def test_every_file_that_is_read_is_part_of_the_cache_key(tmp_path):
    base = tmp_path / "reviews[2018]"
    (base / "deep/er").mkdir(parents=True)
    for number, name in enumerate(("a.csv", "deep/b.csv", "deep/er/c.csv")):
        (base / name).write_text(reviews(number * 100, 100))
    assert run(tmp_path, base) == ("COMPLETE", 300)
    (base / "not read.txt").write_text("nothing")
    assert run(tmp_path, base) == ("CACHED", 300)
    with (base / "deep/er/c.csv").open("a") as file:
        file.write(reviews(1000, 1))
    assert run(tmp_path, base) == ("COMPLETE", 301)
