"""The pushed model that the commands use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig


def last_pushed_model(config: PipelineConfig) -> str:
    """Return the folder of the last pushed model; raise a UserError if there is none."""
    from core.errors import ConfigError
    from platforms.google_cloud.api import find_credentials
    from serving.versions import latest_model

    serving = config.paths.serving
    if serving.startswith("gs://"):
        find_credentials("paths.serving", serving)
    try:
        return latest_model(serving)
    except OSError as error:
        raise ConfigError(f"paths.serving: {serving} cannot be read: {error}") from None
