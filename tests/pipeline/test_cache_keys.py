"""The cache keys of a local run: each input is a part of them, by its content."""

import os
import shutil

import pytest

from components.baseline import ServedBaseline
from pipeline.config import load_config
from pipeline.destinations import destination_json
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local
from tests.serving.models import push

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("__label__1 bad\n__label__2 good\n")
    (tmp_path / "golden.txt").write_text("positive\tgood\nnegative\tbad\n")
    return [
        f"paths.root={tmp_path}/runs",
        f"data.input_base={tmp_path}/in",
        f"serving_check.golden={tmp_path}/golden.txt",
    ]


def keys(settings):
    """Return component -> its execution properties, which TFX's cache compares."""
    config = load_config(overrides=settings, environ={})
    components = create_pipeline(config, Local(config)).components
    return {
        each.id: dict(getattr(each, "exec_properties", {}))
        for each in components
        # It has the time of the run as a parameter.
        if each.id != "RunReport"
    }


def replace(path, text):
    """Replace the content of a file, but not its time of modification."""
    times = path.stat()
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_each_input_is_in_the_key_of_the_component_that_reads_it(settings, tmp_path):
    before = keys(settings)

    def changed():
        after = keys(settings)
        return {name for name in before if before[name] != after[name]}

    assert changed() == set()
    # A copy with other times and another inode has the same content.
    shutil.copy(tmp_path / "in/a.txt", tmp_path / "copy")
    os.replace(tmp_path / "copy", tmp_path / "in/a.txt")
    assert changed() == set()
    replace(tmp_path / "golden.txt", "positive\tbest\nnegative\tbad\n")
    assert changed() == {"ServingCheck"}
    replace(tmp_path / "golden.txt", "positive\tgood\nnegative\tbad\n")
    replace(tmp_path / "in/a.txt", "__label__2 bad\n__label__1 good\n")
    assert changed() == {"ReviewExampleGen"}
    replace(tmp_path / "in/a.txt", "__label__1 bad\n__label__2 good\n")
    assert changed() == set()


def test_the_sample_is_identified_by_its_content(tmp_path, monkeypatch):
    import sample_data

    copy = shutil.copytree(os.path.dirname(sample_data.__file__), tmp_path / "sample_data")
    settings = [f"paths.root={tmp_path}/runs"]
    before = keys(settings)["ReviewExampleGen"]
    monkeypatch.setattr(sample_data, "__file__", str(copy / "__init__.py"))
    assert keys(settings)["ReviewExampleGen"] == before
    reviews = copy / "reviews.ft.txt"
    replace(reviews, reviews.read_text().replace("__label__1", "__label__2", 1))
    assert keys(settings)["ReviewExampleGen"] != before


def test_a_base_model_that_is_replaced_under_its_version_is_another_artifact(tmp_path):
    def uri():
        config = load_config("sample", [f"paths.serving={tmp_path}/serving"], environ={})
        strategy = ServedBaseline(destination_json(config), str(tmp_path / "copies"))
        [model] = strategy.resolve_artifacts(None, {"model": []})["model"]
        return model.uri

    version = tmp_path / "serving/1"
    push(version, 0.8)
    first = uri()
    assert uri() == first
    times = {path: path.stat() for path in version.rglob("*") if path.is_file()}
    shutil.rmtree(version)
    push(version, 0.9)
    for path, old in times.items():
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert uri() != first
