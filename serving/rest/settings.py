"""The settings of `amazon-reviews serve`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import PositiveInt, Section

MODEL_NAME = "amazon_reviews"
"""The name of the model in the URLs."""


class Serve(Section):
    """The REST server of the pushed models, `amazon-reviews serve`."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; the default is reachable from this machine only."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """TCP port; 0: any free port, which the command prints."""
    max_body_bytes: PositiveInt = 4 * 2**20
    """Greatest body of a request, in bytes; a larger one is answered with HTTP 413."""
    max_batch_size: PositiveInt = 1024
    """Most reviews in one request (HTTP 413 if it has more), and in one call of the model."""
    max_queue: PositiveInt = 4096
    """Most reviews that are accepted but not answered; a request beyond it gets HTTP 429."""
    read_timeout: Annotated[float, Field(gt=0)] = 10.0
    """Seconds in which a request must arrive completely; a slower one is answered with HTTP 408."""
    poll_seconds: Annotated[float, Field(gt=0)] = 1.0
    """Seconds between two polls of `paths.serving` for a new model."""
