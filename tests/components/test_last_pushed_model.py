"""The baseline of the local engine, in real runs of a small pipeline: the model pushed last."""

import shutil
import time

import pytest
from ml_metadata import MetadataStore
from tfx.components import Pusher
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2
from tfx.types import Channel
from tfx.types.standard_artifacts import InfraBlessing, Model, ModelBlessing

from components.baseline.strategy import LastPushedModel
from tests.serving.models import push

pytestmark = pytest.mark.slow


@component
def Judge(
    model: InputArtifact[Model], blessing: OutputArtifact[ModelBlessing], settings: Parameter[int]
):
    blessing.set_int_custom_property("blessed", 1)
    blessing.set_int_custom_property("current_model_id", model.id)


@component
def Check(
    model: InputArtifact[Model], blessing: OutputArtifact[InfraBlessing], refuses: Parameter[int]
):
    blessing.set_int_custom_property("blessed", 1 - refuses)
    blessing.set_string_custom_property("cause", "too slow" * refuses)


@component
def Compare(candidate: InputArtifact[Model], model: InputArtifact[Model] = None):
    pass


class Runs:
    """Runs of one pipeline, in each of which a candidate is blessed and pushed."""

    def __init__(self, folder):
        self.folder = folder
        self.serving = folder / "serving"
        self.settings = 0
        for name in "abc":
            push(folder / name / "Format-Serving")
        self.connection = metadata.sqlite_metadata_connection_config(str(folder / "mlmd.sqlite"))

    def run(self, name, *, pushes=True, refuses=False):
        """Run the pipeline; return the name of the candidate's baseline."""
        self.settings += 1
        candidate = Importer(str(self.folder / name), Model, reimport=False).with_id("Candidate")
        baseline = Resolver(
            strategy_class=LastPushedModel,
            model=Channel(type=Model),
            model_blessing=Channel(type=ModelBlessing),
            candidate=candidate.outputs["result"],
        ).with_id("Baseline")
        compare = Compare(
            candidate=candidate.outputs["result"], model=baseline.outputs["model"]
        ).with_id(f"Compare{self.settings}")
        judge = Judge(model=candidate.outputs["result"], settings=self.settings)
        judge.add_upstream_node(compare)
        check = Check(model=candidate.outputs["result"], refuses=int(refuses))
        check.add_upstream_node(judge)
        destination = pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(base_directory=str(self.serving))
        )
        pusher = Pusher(
            model=candidate.outputs["result"],
            model_blessing=judge.outputs["blessing"],
            infra_blessing=check.outputs["blessing"],
            push_destination=destination,
        )
        nodes = [candidate, baseline, compare, judge, check, *([pusher] if pushes else [])]
        # A version is the second in which it is pushed.
        second = int(time.time())
        while int(time.time()) == second:
            time.sleep(0.01)
        LocalDagRunner().run(
            Pipeline(
                pipeline_name="small",
                pipeline_root=str(self.folder / "root"),
                components=nodes,
                metadata_connection_config=self.connection,
            )
        )
        return self.compared_with(compare.id)

    def compared_with(self, node):
        store = MetadataStore(self.connection)
        [context] = [c for c in store.get_contexts_by_type("node") if c.name == f"small.{node}"]
        [execution] = store.get_executions_by_context(context.id)
        events = store.get_events_by_execution_ids([execution.id])
        found = [e.artifact_id for e in events if e.path.steps[0].key == "model"]
        return [a.uri.rpartition("/")[2] for a in store.get_artifacts_by_id(found)]


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


def test_an_older_model_that_is_pushed_again_is_in_production(runs):
    assert runs.run("a") == []
    assert runs.run("b") == ["a"]
    # The same artifact as in the first run, blessed and pushed once more.
    assert runs.run("a") == ["b"]
    assert runs.run("c") == ["a"]
    # After the newest version is deleted, the version before it is in production.
    shutil.rmtree(max(runs.serving.iterdir()))
    assert runs.run("c") == ["a"]
    shutil.rmtree(max(runs.serving.iterdir()))
    shutil.rmtree(max(runs.serving.iterdir()))
    assert runs.run("c", pushes=False) == ["b"]


def test_without_pushes_the_baseline_is_the_model_that_was_blessed_last(runs):
    for name, baseline in (("a", []), ("b", ["a"]), ("a", ["b"]), ("c", ["a"])):
        assert runs.run(name, pushes=False) == baseline


def test_a_model_that_the_serving_check_refused_is_no_baseline(runs):
    assert runs.run("a", refuses=True) == []
    assert not runs.serving.exists()
    assert runs.run("b") == []
    assert runs.run("c", refuses=True) == ["b"]
    assert runs.run("a") == ["b"]
