"""Runs in ML Metadata, as TFX and the local runner write them."""

import json

from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.run_report.history import RUN_TYPE, SETTINGS
from core.metadata import open_store


class Metadata:
    """A store in a folder, without a run."""

    def __init__(self, folder):
        self.store = open_store(str(folder / "metadata.sqlite"))
        self._run_type = self.store.put_context_type(mlmd.ContextType(name=RUN_TYPE))

    def add_run(
        self,
        name,
        settings=None,
        nodes=(),
        state="COMPLETE",
        folder=None,
        output="model",
        properties=(),
    ):
        """Add a run with an output of each node, in `folder/NODE`, with properties of text."""
        run = mlmd.Context(type_id=self._run_type, name=name)
        if settings is not None:
            run.custom_properties[SETTINGS].string_value = json.dumps(settings)
        [run_id] = self.store.put_contexts([run])
        if not nodes:
            return
        node_type = self.store.put_context_type(mlmd.ContextType(name="node"))
        kind = self.store.put_execution_type(mlmd.ExecutionType(name="component"))
        model = self.store.put_artifact_type(mlmd.ArtifactType(name="Model"))
        for node in nodes:
            full_name = f"amazon_reviews.{node}"
            of_node = self.store.get_context_by_type_and_name("node", full_name)
            if of_node is None:
                of_node = mlmd.Context(type_id=node_type, name=full_name)
                [of_node.id] = self.store.put_contexts([of_node])
            execution = mlmd.Execution(
                type_id=kind, last_known_state=mlmd.Execution.State.Value(state)
            )
            artifact = mlmd.Artifact(
                type_id=model, uri=f"{folder or f'/{name}'}/{node}", state=mlmd.Artifact.LIVE
            )
            for key, value in dict(properties).items():
                artifact.custom_properties[key].string_value = value
            event = mlmd.Event(type=mlmd.Event.OUTPUT)
            event.path.steps.add().key = output
            contexts = self.store.get_contexts_by_id([run_id, of_node.id])
            self.store.put_execution(execution, [(artifact, event)], contexts)
