"""Custom TFX components, one file each, or a folder where there are several ideas."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return an artifact type by its name in compiled pipelines.

    The import is lazy: it imports all of TFX, and some modules of this package do not use TFX.

    Raises:
      AttributeError: there is no such type.
    """
    if not name[0].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from components import artifacts

    return getattr(artifacts, name)
