"""The properties of artifacts that a launcher does not pass."""

import json

import pytest

from platforms.properties import with_properties, write_properties


@pytest.fixture
def step(tmp_path):
    """The ExecutorInput of a step that has written the artifact `examples` with properties."""
    uri = str(tmp_path / "examples")
    output = tmp_path / "executor_output.json"
    artifact = {"name": "1", "uri": uri, "metadata": {"split_names": '["train"]', "version": "2"}}
    plain = {"name": "2", "uri": str(tmp_path / "plain"), "metadata": {}}
    outputs = {"examples": {"artifacts": [artifact]}, "plain": {"artifacts": [plain]}}
    output.write_text(json.dumps({"artifacts": outputs}))
    return {"inputs": {}, "outputs": {"artifacts": {}, "outputFile": str(output)}}, uri


def given(uri, **more):
    return {"inputs": {"artifacts": {"examples": {"artifacts": [{"uri": uri, **more}]}}}}


def metadata(executor_input):
    [artifact] = executor_input["inputs"]["artifacts"]["examples"]["artifacts"]
    return artifact["metadata"]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_later_step_gets_the_properties_that_its_launcher_drops(step, tmp_path, end):
    executor_input, uri = step
    write_properties(executor_input)
    found = metadata(with_properties(given(uri + end)))
    assert found == {"split_names": '["train"]', "version": "2"}
    # Nothing is inside the artifact.
    assert not (tmp_path / "examples").exists()
    assert len(list(tmp_path.glob("*.properties.json"))) == 1


def test_the_properties_of_the_launcher_take_precedence(step):
    executor_input, uri = step
    write_properties(executor_input)
    found = metadata(with_properties(given(uri, metadata={"version": "3"})))
    assert found == {"split_names": '["train"]', "version": "3"}


def test_an_artifact_of_another_writer_has_no_properties(tmp_path):
    assert metadata(with_properties(given(str(tmp_path / "model")))) == {}
