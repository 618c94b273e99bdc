"""The settings of `amazon-reviews serve`, and the names that its clients know."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import LocalPath, Section

MODEL_NAME = "amazon_reviews"
"""The name of the model in the URLs."""
VERSION_HEADER = "x-model-version"
"""The header of an answer with the version of its model; TensorFlow Serving has no such header."""


class Server(Section):
    """The REST server of the pushed models, `amazon-reviews serve`."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; the default is reachable from this machine only."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    """TCP port; 0: any free port, which the command prints."""
    sample_folder: LocalPath | None = None
    """Local folder in which the server keeps a random sample of the texts of requests, for
    `amazon-reviews watch`; None: it keeps none. Only its owner can read the files."""
    sample_texts: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Maximum number of texts of a day (UTC) that a server keeps."""
    sample_days: Annotated[int, Field(ge=1)] = 30
    """Number of days, the present one included, after which the server removes their texts."""
