"""The nodes that are built are exactly those of the list, in its order."""

from types import SimpleNamespace

import pytest

from pipeline.config import PipelineConfig
from pipeline.nodes import NODES
from pipeline.selected_nodes import in_order, node_ids

WITH_ALL = PipelineConfig.model_validate({"training": {"warm_start": True, "tuner_trials": 2}})


def node(name, **producers):
    """Return what the checks read of a node: its id, and input -> id of the node that has it."""
    channels = {
        key: SimpleNamespace(get_data_dependent_node_ids=lambda name=name: {name} if name else ())
        for key, name in producers.items()
    }
    return SimpleNamespace(id=name, inputs=channels)


def test_the_settings_select_the_nodes():
    assert node_ids(WITH_ALL) == list(NODES)
    config = PipelineConfig.model_validate({"push": {"destination": "none"}})
    left_out = {"WarmStartModel", "Tuner", "Pusher"}
    assert node_ids(config) == [name for name in NODES if name not in left_out]


def test_the_nodes_get_the_order_of_the_list():
    config = PipelineConfig()
    built = [node(name) for name in reversed(node_ids(config))]
    ordered = in_order([None, *built, None], config)
    assert ordered == built[::-1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda built: [*built, node("Extra")], "the node Extra is built, but pipeline/nodes.py"),
        # These settings leave the Tuner out.
        (lambda built: [*built, node("Tuner")], "the node Tuner is built, but pipeline/nodes.py"),
        (lambda built: built[:-1], "the node RunReport of pipeline/nodes.py is not built"),
        (lambda built: [*built, node("Trainer")], "two nodes have the id Trainer"),
        (
            lambda built: [*built[:-1], node("RunReport", model="Trainer", shares="Extra")],
            "the input shares of the node RunReport is an output of Extra, which is not among",
        ),
    ],
)
def test_a_node_that_is_missing_on_one_side_is_an_error(change, expected):
    config = PipelineConfig()
    built = [node(name, looked_up=None) for name in node_ids(config)]
    with pytest.raises(ValueError, match=expected):
        in_order(change(built), config)
