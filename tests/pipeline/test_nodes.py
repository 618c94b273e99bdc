"""The list of nodes that is shown before TFX is loaded is that of the DAG."""

import pytest

from pipeline.config import PipelineConfig
from pipeline.nodes import node_ids
from pipeline.pipeline import create_pipeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"push": {"destination": "none"}},
        {"training": {"warm_start": True}},
        {"training": {"tuner_trials": 2}},
        {"training": {"warm_start": True, "tuner_trials": 2}, "push": {"destination": "none"}},
        {"data": {"statistics_examples": None}},
    ],
)
def test_the_nodes_are_those_of_the_pipeline_in_its_order(tmp_path, sections):
    config = PipelineConfig.model_validate({"paths": {"root": str(tmp_path)}, **sections})
    # TFX sorts them by what they depend on, which is the order in which they run.
    assert [node.id for node in create_pipeline(config).components] == node_ids(config)
