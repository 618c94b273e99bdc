"""PushedBaseline: the newest served model that is not the candidate, or none."""

import shutil

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from components.baseline.pushed import Executor
from components.baseline.served import existing_model
from core.errors import InputError
from serving.signing.model import SIGNATURE_FILE, SignatureError, sign_model
from serving.signing.settings import Signing, private_key
from tests.serving.test_signing import write_key

pytestmark = pytest.mark.slow


def save(folder, value):
    model = tf.Module()
    model.value = tf.Variable(value)
    model.answer = tf.function(lambda: model.value, input_signature=[])
    tf.saved_model.save(model, str(folder))


def artifact(uri):
    model = standard_artifacts.Model()
    model.uri = str(uri)
    return model


@pytest.fixture
def workspace(tmp_path):
    candidate = tmp_path / "candidate"
    save(candidate / "Format-Serving", 3.0)
    return tmp_path


def baseline(workspace, signing=None, has_candidate=True, **properties):
    out = artifact(workspace / "out")
    keys = (signing or Signing()).model_dump_json()
    Executor().Do(
        {"candidate": [artifact(workspace / "candidate")]} if has_candidate else {},
        {"model": [out]},
        {"serving_dir": str(workspace / "serving"), "signing": keys, **properties},
    )
    inputs = existing_model({"baseline_model": [out], "other": []}, "baseline_model")
    if "baseline_model" not in inputs:
        return None
    assert "other" in inputs
    model = tf.saved_model.load(str(workspace / "out" / "Format-Serving"))
    return model.answer().numpy()


def test_before_the_first_push_there_is_no_baseline(workspace):
    assert baseline(workspace) is None


def test_the_newest_version_has_the_greatest_number(workspace):
    save(workspace / "serving" / "9", 1.0)
    save(workspace / "serving" / "10", 2.0)
    (workspace / "serving" / "notes").mkdir()
    assert baseline(workspace) == 2.0


def test_a_damaged_version_is_an_error(workspace):
    save(workspace / "serving" / "9", 1.0)
    model = workspace / "serving" / "10"
    save(model, 2.0)
    (model / "variables" / "variables.index").unlink()
    with pytest.raises(InputError, match=f"{model} is damaged, .* delete this folder"):
        baseline(workspace)


def test_a_baseline_whose_files_are_gone_is_an_error(workspace):
    save(workspace / "serving" / "9", 1.0)
    baseline(workspace)
    shutil.rmtree(workspace / "out")
    inputs = {"baseline_model": [artifact(workspace / "out")]}
    with pytest.raises(InputError, match=f"baseline_model: the model in {workspace}/out is gone"):
        existing_model(inputs, "baseline_model")


def test_the_candidate_is_not_compared_with_itself(workspace):
    save(workspace / "serving" / "1", 1.0)
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) == 1.0


def test_without_another_pushed_model_there_is_no_baseline(workspace):
    shutil.copytree(workspace / "candidate" / "Format-Serving", workspace / "serving" / "2")
    assert baseline(workspace) is None


class TestSigned:
    """The baseline, and without a candidate the base model of a warm start."""

    @pytest.fixture
    def key(self, workspace):
        return write_key(workspace / "signing.pem")

    @pytest.fixture(params=["private_key", "public_key"])
    def signing(self, key, request):
        suffix = {"private_key": ".pem", "public_key": ".pub"}[request.param]
        return Signing(**{request.param: str(key.with_suffix(suffix))})

    @pytest.fixture(params=[True, False], ids=["baseline", "warm start"])
    def load(self, workspace, signing, request):
        return lambda **given: baseline(workspace, signing, request.param, **given)

    @pytest.fixture
    def pushed(self, workspace, key):
        for number in (1, 2):
            folder = workspace / "serving" / str(number)
            save(folder, float(number))
            sign_model(str(folder), private_key(str(key)))
        return folder

    @pytest.mark.usefixtures("pushed")
    def test_a_signed_model_is_used(self, load):
        assert load() == 2.0

    @pytest.mark.parametrize("pattern", ["saved_model.pb", "fingerprint.pb", "variables/*.data-*"])
    def test_one_changed_byte_is_refused(self, load, pushed, pattern):
        [file] = pushed.glob(pattern)
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        with pytest.raises(SignatureError, match=f"{pushed}: not loaded, .* differs"):
            load()

    def test_a_model_without_a_signature_is_refused(self, load, pushed):
        (pushed / SIGNATURE_FILE).unlink()
        with pytest.raises(SignatureError, match=r"no signature .* set paths\.serving to an empty"):
            load()

    def test_a_copy_of_the_fingerprint_of_the_candidate_hides_no_changed_model(
        self, workspace, load, pushed
    ):
        candidate = workspace / "candidate" / "Format-Serving"
        shutil.copy(candidate / "fingerprint.pb", pushed / "fingerprint.pb")
        with pytest.raises(SignatureError, match=r"fingerprint\.pb differs"):
            load()
