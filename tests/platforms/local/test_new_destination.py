"""A further destination requires a class, a row and a value. All other code calls its methods."""

import dataclasses
import os
from io import StringIO
from unittest.mock import Mock

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd
from rich.console import Console

from cli.run import show
from cli.run_state import RunState
from components.baseline import ServedBaseline, existing_model
from components.destination import make_destination
from components.run_report import history
from core.errors import ConfigError, InputError
from pipeline.config import PipelineConfig, Push
from pipeline.destinations import DESTINATIONS, Row, destination_json
from pipeline.nodes import PUSHER
from pipeline.pipeline import create_pipeline
from platforms import models, served_model
from platforms.local import platform, unchanged
from platforms.local.folders import prepare
from platforms.local.preflight import check_run
from platforms.local.run import mark_replaced
from serving.identity import identity
from tests.outcomes import OUTCOME
from tests.platforms.local.store import Metadata
from tests.serving.models import push as save

pytestmark = pytest.mark.slow


class Place:
    """Settings that push to a shelf with two models, the second of which is served."""

    def __init__(self, folder):
        self.folder = folder
        config = PipelineConfig.model_validate({"paths": {"root": str(folder / "runs")}})
        push = Push.model_construct(destination="shelf")
        self.config = config.model_copy(update={"push": push})
        self.shelf = make_destination(destination_json(self.config))
        self.pushes = []
        for number in (1, 2):
            save(folder / f"trained{number}", 0.6 + number / 10)
            copy = str(folder / f"artifact{number}")
            self.pushes.append(self.shelf.push(str(folder / f"trained{number}"), copy))


@pytest.fixture
def place(tmp_path, monkeypatch):
    row = Row(
        "tests.platforms.local.shelf.Shelf",
        lambda config: {"shelf": f"{config.paths.root}/shelf"},
        ("local",),
    )
    monkeypatch.setitem(DESTINATIONS, "shelf", row)
    return Place(tmp_path)


def test_the_pipeline_pushes_there_and_compares_with_what_is_served_there(place, monkeypatch):
    os.close(prepare(place.config))
    check_run(place.config)
    resolver = Mock(wraps=platform.Resolver)
    monkeypatch.setattr(platform, "Resolver", resolver)
    pipeline = create_pipeline(place.config, platform.Local(place.config))
    [pusher] = [node for node in pipeline.components if node.id == PUSHER]
    assert pusher.exec_properties["destination"] == destination_json(place.config)
    configured = resolver.call_args.kwargs["config"]
    assert configured["destination"] == destination_json(place.config)


def test_the_baseline_is_what_it_serves_and_an_error_names_its_setting(place):
    strategy = ServedBaseline(destination_json(place.config), str(place.folder / "copies"))
    [model] = strategy.resolve_artifacts(None, {"model": []})["model"]
    assert model.get_string_custom_property("baseline") == "version m2"
    assert identity(f"{model.uri}/Format-Serving") == identity(place.shelf.folder("m2"))
    (place.folder / "runs" / "shelf" / "order.json").write_text("{")
    found = strategy.resolve_artifacts(None, {"model": []})
    with pytest.raises(InputError, match=r"^shelf.folder: the baseline in the shelf .* is unknown"):
        existing_model(found, "model")


def test_a_served_model_that_is_damaged_has_its_remedy(place):
    (place.folder / "runs" / "shelf" / "m2" / "variables" / "variables.index").write_text("half")
    strategy = ServedBaseline(destination_json(place.config), str(place.folder / "copies"))
    with pytest.raises(InputError, match=r"shelf/m2 is damaged, .*\); take it off the shelf$"):
        existing_model(strategy.resolve_artifacts(None, {"model": []}), "model")


def test_models_and_rollback(place):
    metadata = Metadata(place.folder / "runs")
    metadata.add_run("first")
    outcome = dataclasses.replace(OUTCOME, pushed_to=place.pushes[0].location)
    history.record_outcome(metadata.store, "first", outcome)
    found = [
        (model.name, model.state, run and run.id) for model, run in models.list_models(place.config)
    ]
    assert found == [("m2", "served", None), ("m1", "", "first")]
    [line] = served_model.roll_back(place.config, None)
    assert line == f"{place.shelf.location} serves version m1 again"
    (place.folder / "runs" / "shelf" / "order.json").unlink()
    with pytest.raises(InputError, match=r"^the shelf .*: no pushed model; .* pass the --config"):
        models.list_models(place.config)
    (place.folder / "runs" / "shelf" / "order.json").mkdir()
    with pytest.raises(ConfigError, match=r"^shelf.folder: cannot be read or written: IsADir"):
        models.list_models(place.config)


def test_a_run_is_unchanged_only_if_it_serves_the_same(place):
    metadata = Metadata(place.folder / "runs")
    metadata.add_run("first")
    report = place.folder / "report.html"
    report.touch()
    outcome = dataclasses.replace(OUTCOME, report=str(report))
    history.record_outcome(metadata.store, "first", outcome)
    unchanged.record(metadata.store, "first", place.config, unchanged.fingerprint(place.config))
    assert unchanged.find_unchanged(place.config).id == "first"
    place.shelf.roll_back()
    assert unchanged.find_unchanged(place.config) is None


def test_a_model_that_it_does_not_serve_is_pushed_again(place):
    store = Metadata(place.folder / "runs").store
    kind = store.put_artifact_type(mlmd.ArtifactType(name="PushedModel"))
    for push in (*place.pushes, Mock(location=f"{place.config.paths.serving}/7")):
        artifact = mlmd.Artifact(type_id=kind, uri=str(place.folder), state=mlmd.Artifact.LIVE)
        artifact.custom_properties["pushed"].int_value = 1
        artifact.custom_properties["pushed_destination"].string_value = push.location
        store.put_artifacts([artifact])
    mark_replaced(Mock(store=store), place.shelf)
    states = [artifact.state == mlmd.Artifact.LIVE for artifact in store.get_artifacts()]
    assert states == [False, True, True]


def test_the_result_of_a_run_names_it(place):
    printed = StringIO()
    show(Console(file=printed), place.config, RunState(outcome=OUTCOME))
    expected = f"compared  with no model: no other model is served from {place.shelf.location}"
    assert expected in printed.getvalue().splitlines()
