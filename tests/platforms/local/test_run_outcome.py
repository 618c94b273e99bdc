"""The outcome of a local run, which is read from the outputs of its components."""

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from components.node_ids import EVALUATOR, EXAMPLE_GEN, SERVING_CHECK
from components.run_report.history import Run
from core.errors import InputError
from platforms.local.run import collect_outcome


def test_an_evaluation_whose_files_were_deleted_is_named(tmp_path):
    """TFX's cache reuses the evaluation as long as its folder exists."""
    artifact = mlmd.Artifact(uri=str(tmp_path))
    outputs = {
        EXAMPLE_GEN: {"rejected": artifact},
        SERVING_CHECK: {"blessing": artifact},
        EVALUATOR: {"evaluation": artifact},
    }
    with pytest.raises(InputError, match=f"^{tmp_path}: files .* deleted, .* --set cache=false"):
        collect_outcome(Run("reviews", "1", outputs=outputs))
