"""Sign a model in a folder, and load only what a signature covers."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from core import exit_codes
from core.errors import UserError
from serving.signing import bundle

SIGNATURE_FILE = "model.sig"
"""Name of the file with the signature, in the folder of a pushed model."""
_CHUNK = 1 << 20


class SignatureError(UserError):
    """A model that is not loaded, because its signature is missing or not valid."""

    exit_code = exit_codes.BAD_INPUT


def sign_model(folder: str, private_pem: bytes) -> None:
    """Write the signature of a model in a local folder to the model."""
    digests = {path: _digest(f"{folder}/{path}") for path in _files(folder)}
    digests.pop(SIGNATURE_FILE, None)
    name = os.path.basename(folder.rstrip("/"))
    with open(f"{folder}/{SIGNATURE_FILE}", "w", encoding="utf-8") as file:
        file.write(bundle.sign(name, digests, private_pem))


@contextmanager
def verified(folder: str, public_key: bytes | None) -> Iterator[str]:
    """Yield a folder with the model that can be loaded until the end of the `with`.

    With a key the folder is a private copy, so that nobody can change a file between its
    verification and its use. The last part of its path is that of `folder`.

    Args:
      folder: local folder or URL of a model.
      public_key: PEM of the key that must have signed it; None: yield `folder` itself.

    Raises:
      SignatureError: there is no signature, it is not valid, or a file differs from it.
    """
    if public_key is None:
        yield folder
        return
    folder = folder.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="verified-model-") as scratch:
        copy = os.path.join(scratch, os.path.basename(folder))
        found = {path: _digest(f"{folder}/{path}", f"{copy}/{path}") for path in _files(folder)}
        if found.pop(SIGNATURE_FILE, None) is None:
            raise SignatureError(
                f"{folder}: not loaded, it has no signature {SIGNATURE_FILE}. Push a model with "
                "signing.private_key, or unset signing.public_key"
            )
        with open(f"{copy}/{SIGNATURE_FILE}", "rb") as file:
            content = file.read()
        try:
            signed = bundle.verified_digests(content, public_key)
        except bundle.InvalidBundle as error:
            raise SignatureError(
                f"{folder}: not loaded, {SIGNATURE_FILE} {error}. Push the model again, or set "
                "signing.public_key to the key of its owner"
            ) from None
        if found != signed:
            raise SignatureError(
                f"{folder}: not loaded, {_difference(found, signed)}. Push the model again"
            )
        yield copy


def _difference(found: dict[str, str], signed: dict[str, str]) -> str:
    for path in sorted({*found, *signed}):
        if path not in signed:
            return f"{path} is not in the signature"
        if path not in found:
            return f"{path} is in the signature, but missing"
        if found[path] != signed[path]:
            return f"{path} differs from the signed file"
    raise AssertionError("they are equal")


def _files(folder: str) -> list[str]:
    """Return the paths of all files in `folder`, relative to it, with slashes."""
    import tensorflow as tf

    found = []
    for place, _, names in tf.io.gfile.walk(folder):
        relative = place[len(folder) :].strip("/")
        found += [f"{relative}/{name}" if relative else name for name in names]
    return found


def _digest(path: str, copy: str = "") -> str:
    """Return the SHA-256 of a file, and write its content to `copy` if that is given."""
    import tensorflow as tf

    digest = hashlib.sha256()
    if copy:
        os.makedirs(os.path.dirname(copy), exist_ok=True)
    with tf.io.gfile.GFile(path, "rb") as source, open(copy or os.devnull, "wb") as target:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            target.write(chunk)
    return digest.hexdigest()
