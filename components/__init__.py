"""Custom TFX components, one folder each."""

from typing import Any

_ARTIFACT_TYPES = ("CheckedData", "RejectedLines")


def __getattr__(name: str) -> Any:
    """The artifact types by the names that compiled pipelines have for them.

    Imported only when asked for: with them comes all of TFX, for which not every user of this
    package has to wait.
    """
    if name in _ARTIFACT_TYPES:
        from components import artifacts

        return getattr(artifacts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
