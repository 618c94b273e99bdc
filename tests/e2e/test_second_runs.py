"""A run reports its own result, whatever other runs did to its metadata and models meanwhile."""

import shutil

import pytest
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration import metadata

from core.metadata import connection_config
from platforms.local.outcome import NoOutcomeError, run_outcome
from tests.e2e.harness import ALWAYS
from tests.exhaustive import exhaustive
from tests.waiting import wait

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finished")]


def runs(store):
    """Return the names of the runs in ML Metadata, the newest last."""
    return [run.name for run in sorted(store.get_contexts_by_type("pipeline_run"), key=by_id)]


def by_id(proto):
    return proto.id


def begin_another_run(workspace):
    """Write what a new run writes to shared metadata: a context, and an execution that is running;
    return the name of the run."""
    config = mlmd.ConnectionConfig()
    config.sqlite.filename_uri = str(workspace.root / "metadata.sqlite")
    config.sqlite.connection_mode = mlmd.SqliteMetadataSourceConfig.READWRITE
    store = MetadataStore(config)
    kinds = {kind.name.rpartition(".")[2]: kind.id for kind in store.get_execution_types()}
    name = f"another-{len(runs(store))}"
    run_kind = store.get_context_type("pipeline_run").id
    [run] = store.put_contexts([mlmd.Context(type_id=run_kind, name=name)])
    pipeline = store.get_context_by_type_and_name("pipeline", "amazon_reviews")
    store.put_parent_contexts([mlmd.ParentContext(child_id=run, parent_id=pipeline.id)])
    [execution] = store.put_executions(
        [
            mlmd.Execution(
                type_id=kinds["Executor"] if "Executor" in kinds else min(kinds.values()),
                last_known_state=mlmd.Execution.RUNNING,
            )
        ]
    )
    store.put_attributions_and_associations(
        [], [mlmd.Association(context_id=run, execution_id=execution)]
    )
    return name


def test_a_run_reports_its_own_result_although_a_newer_one_has_begun(finished):
    workspace, _ = finished
    # Without it, the command would show the result of the finished run.
    begin_another_run(workspace)
    known = len(runs(workspace.store()))
    run = workspace.start()
    wait(lambda: run.poll() is not None or len(runs(workspace.store())) > known)
    begin_another_run(workspace)
    printed, _ = run.communicate(timeout=600)
    assert run.returncode == 0, printed
    assert f"pushed to {workspace.pushed()[0]}" in printed


def test_each_run_has_its_own_outcome(finished):
    workspace, output = finished
    first = runs(workspace.store())[0]
    unfinished = begin_another_run(workspace)
    location = str(workspace.root / "metadata.sqlite")
    with metadata.Metadata(connection_config(location)) as handle:
        outcome = run_outcome(handle, first)
        assert f"accuracy  {outcome.accuracy:.4f}" in output
        assert outcome.pushed_to == str(workspace.pushed()[0])
        with pytest.raises(NoOutcomeError, match=f"rejected of ReviewExampleGen.* {unfinished}"):
            run_outcome(handle, unfinished)
        with pytest.raises(NoOutcomeError, match="for the run no-such-run"):
            run_outcome(handle, "no-such-run")


@pytest.mark.parametrize("served", [exhaustive("nothing"), "part of it", exhaustive("another one")])
def test_a_model_that_is_not_served_is_pushed_again_and_only_once(finished, served):
    """After a run with other settings another model is served."""
    workspace, _ = finished
    [model] = workspace.pushed()
    if served == "nothing":
        shutil.rmtree(model)
    elif served == "part of it":
        (model / "saved_model.pb").unlink()
    else:
        shutil.copytree(model, model.with_name(str(int(model.name) + 1)))
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    states = workspace.states(done.stdout)
    assert {states.pop(name) for name in ("Pusher", *ALWAYS)} == {"done"}
    assert set(states.values()) == {"cached"}
    pushed = workspace.pushed()
    assert pushed[-1] != model
    assert f"pushed to {pushed[-1]}" in done.stdout
    assert workspace.command("predict", "Great phone").returncode == 0

    done = workspace.run()
    assert workspace.states(done.stdout)["Pusher"] == "cached"
    assert f"pushed to {pushed[-1]}" in done.stdout
    assert workspace.pushed() == pushed
