"""The settings of `amazon-reviews serve`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

MODEL_NAME = "amazon_reviews"
"""The name of the model in the URLs."""


class Server(Section):
    """The REST server of the pushed models, `amazon-reviews serve`."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; the default is reachable from this machine only."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """TCP port; 0: any free port, which the command prints."""

    removed = dict.fromkeys(
        ("max_body_bytes", "max_batch_size", "max_queue", "read_timeout", "poll_seconds"),
        "its default is a constant",
    )
