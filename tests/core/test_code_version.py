"""The code in a component's cache key: the code that determines its output, and no other."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tfx.utils import json_utils

from core import code_version
from pipeline.config import load_config
from pipeline.pipeline import create_pipeline
from platforms.local.platform import Local

pytestmark = pytest.mark.slow

CHECKOUT = Path(code_version.__file__).parents[1]
DEPENDENTS = {
    "components/beam.py": {"ReviewExampleGen", "Transform", "Evaluator"},
    "components/data_gate.py": {"DataGate"},
    "components/saved_models.py": {"Pusher"},
    "core/errors.py": {"DataGate"},
    "preprocessing/transform.py": {"Transform"},  # which an execution property names
    "preprocessing/fast/ngrams.py": {"Transform", "Evaluator", "ServingCheck"},
    "trainer_module/training.py": {"Tuner", "Trainer"},
    "trainer_module/task.py": {"Trainer"},  # which is started as a process
    "trainer_module/models/cnn_lstm.py": {"Trainer"},  # which the name in the settings imports
    "serving/rest/server.py": {"ServingCheck"},  # which is started as a process
    "components/run_report/templates/report.html.j2": {"RunReport"},
}
"""Source -> some of the components whose output depends on it."""
ALL_DEPENDENTS = {
    "components/review_example_gen/component.py": {"ReviewExampleGen"},
    "components/serving_folder.py": {"Pusher"},  # which an execution property names
    # These determine no output, except through inputs and properties.
    "cli/app.py": set(),
    "pipeline/pipeline.py": set(),
    "platforms/submission.py": set(),
}


@pytest.fixture(scope="module")
def components():
    environ = {"PIPELINE_SET": "training.tuner_trials=2"}
    config = load_config("sample", environ=environ)
    pipeline = create_pipeline(config, Local(config))
    return {item.id: item for item in pipeline.components if item.id != "ServedModel"}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of the sources that a test may change."""
    for package in code_version.PACKAGES:
        shutil.copytree(CHECKOUT / package, tmp_path / package)
    monkeypatch.setattr(code_version, "_ROOT", tmp_path)
    return tmp_path


def keys(components):
    return {
        name: code_version.code_fingerprint(code_version.roots(component))
        for name, component in components.items()
    }


def test_every_component_of_the_pipeline_carries_its_code(components):
    carried = {name: item.exec_properties["code"] for name, item in components.items()}
    assert carried == keys(components)


def test_a_training_continues_only_from_checkpoints_of_the_same_code(components):
    for name in ("Tuner", "Trainer"):
        config = json_utils.loads(components[name].exec_properties["custom_config"])
        assert config["code"] == code_version.code_fingerprint(["trainer_module.run_fn.run_fn"])


def test_a_changed_source_changes_only_the_keys_of_components_that_depend_on_it(
    components, checkout
):
    before = keys(components)
    for source, expected in (DEPENDENTS | ALL_DEPENDENTS).items():
        text = (checkout / source).read_text()
        (checkout / source).write_text(text + "\n# changed\n")
        changed = {name for name, key in keys(components).items() if key != before[name]}
        assert changed >= expected, source
        assert source not in ALL_DEPENDENTS or changed == expected, source
        (checkout / source).write_text(text)
    assert keys(components) == before


IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    while True:
        try:
            importlib.import_module(name)
            break
        except ModuleNotFoundError:
            name = name.rpartition(".")[0]  # of a function
print(*(name for name in sys.modules if name.split(".")[0] in %r))
"""


def test_every_module_that_a_component_imports_is_in_its_key(components):
    roots = {root for component in components.values() for root in code_version.roots(component)}
    program = IMPORTS % (code_version.PACKAGES,)
    command = [sys.executable, "-c", program, *roots]
    printed = subprocess.check_output(command, cwd=CHECKOUT, text=True)
    files = set(code_version.sources(roots))
    imported = printed.splitlines()[-1].split()
    assert "preprocessing.reading.labels" in imported
    for name in imported:
        place = CHECKOUT.joinpath(*name.split("."))
        assert {place.with_suffix(".py"), place / "__init__.py"} & files, name


@pytest.mark.parametrize("upgraded", code_version._LIBRARIES)
def test_each_upgraded_library_alone_is_another_version(monkeypatch, upgraded):
    before, all_before = code_version.code_fingerprint(["core.errors"]), code_version.all_code()
    real = code_version.metadata.version
    monkeypatch.setattr(
        code_version.metadata, "version", lambda name: "99.0" if name == upgraded else real(name)
    )
    assert code_version.code_fingerprint(["core.errors"]) != before
    assert code_version.all_code() != all_before


def test_sources_that_change_places_are_another_version(checkout):
    before = code_version.all_code()
    one, other = (checkout / "core" / name for name in ("errors.py", "files.py"))
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    assert code_version.all_code() != before
    # The content moves from one file to the next one.
    one.write_bytes(contents[0] + contents[1])
    other.write_bytes(b"")
    assert code_version.all_code() != before


def test_an_upgraded_library_changes_every_key(components, monkeypatch):
    before = keys(components)
    real = code_version.metadata.version

    def version(library):
        return "99.0" if library == "tensorflow" else real(library)

    monkeypatch.setattr(code_version.metadata, "version", version)
    after = keys(components)
    assert all(after[name] != before[name] for name in before)
