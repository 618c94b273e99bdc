"""The cache hits of ReviewExampleGen, in runs of the local engine on changing files."""

import json
from pathlib import Path

import pytest
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.metadata import sqlite_metadata_connection_config
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import example_gen_pb2

from components.artifacts import RejectedLines
from components.review_example_gen.component import InputProcessor, ReviewExampleGen
from components.review_example_gen.inputs import Options

pytestmark = pytest.mark.slow


def run(folder, base):
    """Run a pipeline of ReviewExampleGen alone; return state and Examples of the execution."""
    metadata = sqlite_metadata_connection_config(str(folder / "metadata.sqlite"))
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="cache",
            pipeline_root=str(folder / "root"),
            components=[ReviewExampleGen(str(base), {"all": "**/*.csv"}, Options())],
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


def test_spans_and_versions_are_found_and_fingerprinted(tmp_path):
    for span, version in ((1, 1), (2, 1), (2, 2)):
        (tmp_path / f"span-{span}/v{version}").mkdir(parents=True)
        (tmp_path / f"span-{span}/v{version}/a.csv").write_text(reviews(span, version))

    def resolve():
        split = example_gen_pb2.Input.Split(name="all", pattern="span-{SPAN}/v{VERSION}/*.csv")
        processor = InputProcessor(str(tmp_path), [split])
        span, version = processor.resolve_span_and_version()
        return span, version, processor.get_input_fingerprint(span, version)

    span, version, before = resolve()
    assert (span, version) == (2, 2)
    (tmp_path / "span-2/v1/a.csv").write_text(reviews(5, 5))
    assert resolve() == (2, 2, before)
    (tmp_path / "span-2/v2/a.csv").write_text(reviews(5, 5))
    assert resolve()[2] != before
