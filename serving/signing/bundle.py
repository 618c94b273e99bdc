"""The signature of a model as a file: OpenSSF Model Signing 1.0, by an elliptic-curve key.

The file is a Sigstore bundle. It contains a DSSE envelope around an in-toto statement, which lists
the SHA-256 of each file. The package `model-signing` reads and writes the same files, but it does
not run with the libraries of TFX 1.16: its requirement tuf imports names of urllib3 2.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE_TYPE = "https://model_signing/signature/v1.0"
_ALGORITHM = "sha256"
_HASHES: dict[str, hashes.HashAlgorithm] = {
    "secp256r1": hashes.SHA256(),
    "secp384r1": hashes.SHA384(),
    "secp521r1": hashes.SHA512(),
}


class InvalidBundle(Exception):
    """A bundle that is not valid for a key. The message starts with a verb."""


def decrypted_pem(content: bytes, password: bytes | None) -> bytes:
    """Return a private key in PEM without encryption.

    Raises:
      TypeError, ValueError: it is not an elliptic-curve key, or the password is wrong.
    """
    key = serialization.load_pem_private_key(content, password)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name not in _HASHES:
        raise ValueError("it is not a key on a supported curve")
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(private_pem: bytes) -> bytes:
    """Return the public key of a private one, both in PEM."""
    return _pem(_private(private_pem).public_key())


def sign(name: str, digests: Mapping[str, str], private_pem: bytes) -> str:
    """Return the bundle of a model.

    Args:
      name: a name for the model, which is not verified.
      digests: path of each file in the model, with slashes -> its SHA-256 in hexadecimal digits.
      private_pem: from `decrypted_pem`.
    """
    key = _private(private_pem)
    resources = [
        {"name": path, "algorithm": _ALGORITHM, "digest": digests[path]} for path in sorted(digests)
    ]
    statement = {
        "_type": _STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {_ALGORITHM: _root(resources)}}],
        "predicateType": _PREDICATE_TYPE,
        "predicate": {
            "serialization": {"method": "files", "hash_type": _ALGORITHM, "allow_symlinks": False},
            "resources": resources,
        },
    }
    payload = json.dumps(statement).encode()
    signature = key.sign(_encoded(payload), ec.ECDSA(_HASHES[key.curve.name]))
    hint = hashlib.sha256(_pem(key.public_key())).hexdigest()
    bundle = {
        "mediaType": _BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": _PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }
    return json.dumps(bundle)


def verified_digests(bundle: bytes, public_key: bytes) -> dict[str, str]:
    """Return the path and the SHA-256 of each file that a bundle lists.

    Args:
      bundle: the content of the file.
      public_key: the key in PEM that must have signed it.

    Raises:
      InvalidBundle: it is no bundle, or not one of that key.
    """
    try:
        envelope = json.loads(bundle)["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
        payload_type = envelope["payloadType"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise InvalidBundle("is not a Sigstore bundle with a signed statement") from None
    key = _public(public_key)
    try:
        key.verify(signature, _encoded(payload), ec.ECDSA(_HASHES[key.curve.name]))
    except InvalidSignature:
        raise InvalidBundle("was not signed by the key, or was changed") from None
    # The owner of the key wrote this content, but it may be something else than a list of files.
    try:
        statement = json.loads(payload)
        predicate = statement["predicate"]
        kinds = (payload_type, statement["_type"], statement["predicateType"])
        method = predicate["serialization"]["method"]
        resources = predicate["resources"]
        digests = {resource["name"]: resource["digest"] for resource in resources}
        algorithms = {resource["algorithm"] for resource in resources}
        signed_root = statement["subject"][0]["digest"][_ALGORITHM]
        root = _root(resources)
    except (ValueError, KeyError, IndexError, TypeError):
        raise InvalidBundle("contains a statement without a list of files") from None
    if kinds != (_PAYLOAD_TYPE, _STATEMENT_TYPE, _PREDICATE_TYPE) or method != "files":
        raise InvalidBundle("is not a list of files of OpenSSF Model Signing 1.0")
    if algorithms - {_ALGORITHM} or len(digests) != len(resources) or root != signed_root:
        raise InvalidBundle("contains a list of files that contradicts itself")
    return digests


def _root(resources: list[Any]) -> str:
    """Return the hash of all files: that of their hashes, in the order of the list."""
    digests = (bytes.fromhex(resource["digest"]) for resource in resources)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _encoded(payload: bytes) -> bytes:
    """Return what DSSE signs: type and payload, each with its length."""
    return b"DSSEv1 %d %s %d %s" % (
        len(_PAYLOAD_TYPE),
        _PAYLOAD_TYPE.encode(),
        len(payload),
        payload,
    )


def _private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _public(pem: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = serialization.load_pem_public_key(pem)
    except ValueError as error:
        raise InvalidBundle(f"cannot be verified: the public key is not valid: {error}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _HASHES:
        raise InvalidBundle("cannot be verified: the public key is not on a supported curve")
    return key


def _pem(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
