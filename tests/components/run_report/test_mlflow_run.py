"""The versions of the registered model in MLflow that belong to pushed models."""

from types import SimpleNamespace

from components.run_report.mlflow_run import MODEL_TAG, registered


def test_a_version_that_somebody_registered_by_hand_is_no_pushed_model():
    """A run whose model is unknown would count as registered, and be sent without a model."""
    by_hand = SimpleNamespace(version="3", tags={})
    newer, older = (SimpleNamespace(version=each, tags={MODEL_TAG: "a"}) for each in "21")
    client = SimpleNamespace(search_model_versions=lambda _: [by_hand, newer, older])
    assert registered(client, "reviews") == {"a": older}
