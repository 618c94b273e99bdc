"""The section `signing` of the settings, and its keys."""

from __future__ import annotations

import os

from pydantic import field_validator

from core.errors import ConfigError
from core.settings import Section

PASSWORD_VARIABLE = "SIGNING_PASSWORD"


class Signing(Section):
    """Signatures of pushed models in the format of OpenSSF Model Signing; off without a key."""

    private_key: str | None = None
    """PEM file with the elliptic-curve key that signs a model before it is pushed; the password of
    an encrypted file is in `$SIGNING_PASSWORD`. None: models are not signed."""
    public_key: str | None = None
    """PEM file with the key that a pushed model must be signed by, or `serve`, `predict` and the
    pipeline do not load it; None: that of `private_key`, and without one every model is loaded."""

    @field_validator("private_key", "public_key")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value and "://" in value:
            raise ValueError("must be a file of the machine")
        return os.path.abspath(os.path.expanduser(value)) if value else None


def verification_key(signing: Signing) -> bytes | None:
    """Return the public key in PEM that models must be signed by; None: models are not verified.

    Raises:
      ConfigError: a file cannot be read, or the private key cannot be used.
    """
    if signing.public_key:
        return _read("signing.public_key", signing.public_key)
    if not signing.private_key:
        return None
    from serving.signing.bundle import public_pem

    return public_pem(private_key(signing.private_key))


def private_key(file: str) -> bytes:
    """Return the private key in PEM, decrypted.

    Raises:
      ConfigError: the file cannot be read, is not a key, or the password is wrong.
    """
    from serving.signing.bundle import decrypted_pem

    content = _read("signing.private_key", file)
    password = os.environ.get(PASSWORD_VARIABLE)
    try:
        return decrypted_pem(content, password.encode() if password else None)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"signing.private_key: {file} cannot be used: {error}. It must be a private key in PEM "
            f"on one of the curves P-256, P-384 and P-521, and ${PASSWORD_VARIABLE} its password"
        ) from None


def _read(key: str, file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise ConfigError(f"{key}: {file} cannot be read: {error.strerror}") from None
