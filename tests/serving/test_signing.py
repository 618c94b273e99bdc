"""Signed models: what is refused, and what refuses it."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from core.errors import ConfigError, ServerError
from serving.signing import bundle
from serving.signing.model import SIGNATURE_FILE, SignatureError, sign_model, verified
from serving.signing.settings import Signing, private_key, verification_key

FILES = {"saved_model.pb": b"graph", "variables/variables.index": b"index", "empty": b""}


def write_key(file, curve=None, password=None):
    """Write a new private key to `file`, and its public key beside it."""
    key = ec.generate_private_key(curve or ec.SECP256R1())
    encryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(pem, pkcs8, encryption))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    file.with_suffix(".pub").write_bytes(key.public_key().public_bytes(pem, public))
    return file


@pytest.fixture
def key(tmp_path):
    return write_key(tmp_path / "signing.pem")


@pytest.fixture
def public(key):
    return key.with_suffix(".pub").read_bytes()


@pytest.fixture
def model(tmp_path, key):
    folder = tmp_path / "serving" / "17"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    sign_model(str(folder), private_key(str(key)))
    return folder


def refusal(model, public):
    with pytest.raises(SignatureError) as raised, verified(str(model), public):
        pass
    assert raised.value.exit_code == 2
    return str(raised.value)


def test_a_signed_model_is_loaded_from_a_copy(model, public):
    with verified(str(model), public) as folder:
        assert folder != str(model) and folder.endswith("/17")
        (model / "saved_model.pb").write_bytes(b"other")
        for name, content in FILES.items():
            with open(f"{folder}/{name}", "rb") as file:
                assert file.read() == content


def test_without_a_key_the_model_itself_is_loaded(model):
    (model / SIGNATURE_FILE).unlink()
    with verified(str(model), None) as folder:
        assert folder == str(model)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_one_changed_byte_is_refused(model, public, name):
    content = bytearray((model / name).read_bytes())
    content[-1] ^= 1
    (model / name).write_bytes(content)
    assert refusal(model, public).startswith(f"{model}: not loaded, {name} differs")


def test_files_that_come_or_go_are_refused(model, public):
    (model / "assets").mkdir()
    (model / "assets" / "words").write_bytes(b"")
    assert "assets/words is not in the signature" in refusal(model, public)
    (model / "assets" / "words").unlink()
    (model / "empty").unlink()
    assert "empty is in the signature, but missing" in refusal(model, public)


def test_every_changed_byte_of_the_signature_is_refused(model, public):
    """A change of JSON's white space or of the hint of the key is no change of what is signed."""
    file = model / SIGNATURE_FILE
    envelope = json.loads(file.read_bytes())["dsseEnvelope"]
    signed = [base64.b64decode(envelope["payload"])]
    signed.append(base64.b64decode(envelope["signatures"][0]["sig"]))
    for part, place in enumerate((envelope, envelope["signatures"][0])):
        for index in range(0, len(signed[part]), 7):
            content = bytearray(signed[part])
            content[index] ^= 1
            changed = base64.b64encode(bytes(content)).decode()
            place["payload" if part == 0 else "sig"] = changed
            with pytest.raises(bundle.InvalidBundle):
                bundle.verified_digests(json.dumps({"dsseEnvelope": envelope}).encode(), public)
        place["payload" if part == 0 else "sig"] = base64.b64encode(signed[part]).decode()
    bundle.verified_digests(json.dumps({"dsseEnvelope": envelope}).encode(), public)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"dsseEnvelope": {}}', b"\xff"])
def test_a_file_that_is_no_signature_is_refused(model, public, content):
    (model / SIGNATURE_FILE).write_bytes(content)
    assert "model.sig is not a Sigstore bundle" in refusal(model, public)


def test_a_model_without_a_signature_and_one_of_another_key_are_refused(model, public, tmp_path):
    other = write_key(tmp_path / "other.pem")
    assert "was not signed by the key" in refusal(model, other.with_suffix(".pub").read_bytes())
    assert "the public key is not valid" in refusal(model, b"no key")
    (model / SIGNATURE_FILE).unlink()
    assert "it has no signature model.sig" in refusal(model, public)


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()])
def test_other_curves(model, tmp_path, curve):
    file = write_key(tmp_path / "other.pem", curve)
    sign_model(str(model), private_key(str(file)))
    with verified(str(model), file.with_suffix(".pub").read_bytes()):
        pass


def test_the_keys_of_the_settings(key, public, tmp_path, monkeypatch):
    assert verification_key(Signing()) is None
    assert verification_key(Signing(private_key=str(key))) == public
    assert verification_key(Signing(public_key=str(key.with_suffix(".pub")))) == public
    with pytest.raises(ConfigError, match=r"^signing.public_key: .*/none cannot be read"):
        verification_key(Signing(public_key=str(tmp_path / "none")))
    encrypted = write_key(tmp_path / "encrypted.pem", password=b"secret")
    with pytest.raises(ConfigError, match=r"^signing.private_key: .*SIGNING_PASSWORD"):
        private_key(str(encrypted))
    monkeypatch.setenv("SIGNING_PASSWORD", "secret")
    assert private_key(str(encrypted)).startswith(b"-----BEGIN PRIVATE KEY-----")
    bitcoin = write_key(tmp_path / "other.pem", ec.SECP256K1())
    monkeypatch.delenv("SIGNING_PASSWORD")
    with pytest.raises(ConfigError, match="P-256, P-384 and P-521"):
        private_key(str(bitcoin))


@pytest.mark.slow
class TestUses:
    """What loads a pushed model, with models of TensorFlow."""

    @pytest.fixture
    def push(self, tmp_path, key):
        from tests.serving.models import push

        def pushed(version):
            folder = tmp_path / "pushed" / str(version)
            push(folder)
            sign_model(str(folder), private_key(str(key)))
            return folder

        return pushed

    def break_(self, folder):
        [file] = (folder / "variables").glob("*.data-*")
        content = bytearray(file.read_bytes())
        content[0] ^= 1
        file.write_bytes(content)

    def test_predictor_and_scorer(self, push, public):
        from serving.batch.scorer import Scorer
        from serving.predictor import Predictor

        folder = push(1)
        for load in (Predictor, Scorer):
            loaded = load(str(folder), public)
        assert Predictor(str(folder), public).predict(["good"])[0].label == 1
        assert loaded.score([b"good"]).label.tolist() == [1]
        self.break_(folder)
        for load in (Predictor, Scorer):
            with pytest.raises(SignatureError, match="differs from the signed file"):
                load(str(folder), public)

    def test_the_server_keeps_the_model_before_a_changed_one(self, push, public):
        from functools import partial

        from serving.rest.metrics import Metrics
        from serving.rest.models import LoadedModel
        from serving.rest.switching import Models

        first = push(1)
        self.break_(push(2))
        models = Models(str(first.parent), Metrics(), partial(LoadedModel, public_key=public))
        models.load_first()
        assert models.current.version == 1
        assert "has no valid signature" in dict(models.states())[2].error_message
        self.break_(first)
        models = Models(str(first.parent), Metrics(), partial(LoadedModel, public_key=public))
        with pytest.raises(ServerError, match="differs from the signed file"):
            models.load_first()

    def test_a_new_key_is_no_cache_hit_of_the_pusher(self, key):
        from tfx.types import channel_utils, standard_artifacts

        from components.pusher.component import VersionPusher

        def properties():
            kinds = {
                "model": standard_artifacts.Model,
                "model_blessing": standard_artifacts.ModelBlessing,
                "infra_blessing": standard_artifacts.InfraBlessing,
            }
            pusher = VersionPusher(
                **{name: channel_utils.as_channel([kind()]) for name, kind in kinds.items()},
                serving_dir="serving",
                private_key=str(key),
            )
            return pusher.exec_properties

        before = properties()
        assert properties() == before
        write_key(key)
        assert properties() != before
        key.unlink()  # It is on the machine of the component only.
        assert str(key) in properties()["custom_config"]
