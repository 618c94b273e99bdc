"""The command that fingerprints the input on Vertex AI: its exit codes."""

import runpy

import pytest
from tfx.components.example_gen import input_processor

from components.review_example_gen.component import InputProcessor
from core.errors import InputError
from platforms import driver

pytestmark = pytest.mark.slow

run_path = runpy.run_path


@pytest.fixture
def tfx_ends(monkeypatch):
    """Let TFX's driver end with an exception; return what class it would have constructed."""
    constructs = []
    monkeypatch.setattr(input_processor, "FileBasedInputProcessor", object)

    def end_with(error):
        def run_module(name, **keywords):
            constructs.append(input_processor.FileBasedInputProcessor)
            raise error

        monkeypatch.setattr(runpy, "run_module", run_module)
        return constructs

    return end_with


def run_command():
    """Run the file as `python -m platforms.driver` does."""
    run_path(driver.__file__, run_name="__main__")


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no file matches"), 2), (SystemExit(None), None), (SystemExit(3), 3)],
    ids=["wrong input", "done", "exit 3"],
)
def test_the_exit_code_is_that_of_the_driver(tfx_ends, capsys, error, code):
    constructs = tfx_ends(error)
    with pytest.raises(SystemExit) as end:
        run_command()
    assert end.value.code == code
    message = "ReviewExampleGen: no file matches\n" if code == 2 else ""
    assert capsys.readouterr().err == message
    assert constructs == [InputProcessor]


def test_a_crash_of_the_driver_is_not_hidden(tfx_ends):
    tfx_ends(RuntimeError("the bucket cannot be listed"))
    with pytest.raises(RuntimeError, match="the bucket cannot be listed"):
        run_command()
