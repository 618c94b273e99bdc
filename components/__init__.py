"""Our TFX components: one file for each, or a folder if it has several ideas."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return an artifact type of `components.artifacts`, for its import path in compiled pipelines.

    The import is lazy, because it loads all of TFX, which some modules of this package do not use.

    Args:
      name: the name of the class.

    Raises:
      AttributeError: no artifact type has this name.
    """
    if not name[0].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from components import artifacts

    return getattr(artifacts, name)
