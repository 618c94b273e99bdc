"""Errors that a client of the REST server gets as an HTTP status and `{"error": MESSAGE}`."""

from __future__ import annotations

from http import HTTPStatus


class ApiError(Exception):
    """A request that is not answered with a prediction.

    Attributes:
      status: HTTP status.
      message: the value of `error` in the body.
      headers: additional headers of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


def invalid(message: str) -> ApiError:
    """Return the error for a request whose content is wrong (TensorFlow's INVALID_ARGUMENT)."""
    return ApiError(HTTPStatus.BAD_REQUEST, message)


def not_found(message: str) -> ApiError:
    """Return the error for a model or version that is not served (TensorFlow's NOT_FOUND)."""
    return ApiError(HTTPStatus.NOT_FOUND, message)


def too_large(message: str) -> ApiError:
    """Return the error for a body or batch above a limit."""
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)


def overloaded(message: str) -> ApiError:
    """Return the error for a request that the server has no room for at the moment."""
    return ApiError(HTTPStatus.TOO_MANY_REQUESTS, message, {"retry-after": "1"})
