"""A pushed model, and the command in this process."""

import pytest

from cli import command


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A folder of runs with one pushed model."""
    from tests.serving.models import push  # `make test-fast` loads this file without TensorFlow.

    folder = tmp_path_factory.mktemp("root")
    push(folder / "serving" / "1")
    return folder


@pytest.fixture
def call(root, monkeypatch):
    """Return a function that runs `amazon-reviews` in this process, and returns its exit code."""

    def do(*words, root=root):
        monkeypatch.setenv("PIPELINE_SET", f"paths.root={root}")
        monkeypatch.setattr("sys.argv", ["amazon-reviews", *words])
        with pytest.raises(SystemExit) as ended:
            command.main()
        return ended.value.code or 0

    return do
