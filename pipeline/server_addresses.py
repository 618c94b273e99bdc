"""Checks of the addresses of servers in the settings, without a request to them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit


def has_password(uri: str) -> bool:
    """Return whether an address contains a password, or an @ that may follow one.

    The settings are part of reports, of ML Metadata and of the compiled pipeline. So none of them
    may contain a password.
    """
    try:
        parts = urlsplit(uri)
        host, password, _ = parts.hostname, parts.password, parts.port
    except ValueError:
        return "@" in uri
    return password is not None or ("@" in uri and not host)


def server_problem(uri: str) -> str:
    """Return why a text is no address of a tracking server, with the remedy; empty if it is."""
    example = "set the address of a tracking server, such as http://mlflow:5000"
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        # The message may contain a part of a password.
        reason = "" if "@" in uri else f" ({error})"
        return f"the address is not valid{reason}; {example}"
    if has_password(uri):
        return (
            "the address contains a password; set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD instead"
        )
    if parts.scheme in ("http", "https"):
        if not host or any(character.isspace() for character in uri):
            return f"{uri} has no host; {example}"
        if parts.query or "#" in uri:
            return f"{uri} is the address of a page; set only the part before ? and #"
        return ""
    if re.match(r"(sqlite|mysql|postgresql|mssql)(\+\w+)?://|file:|\.?\.?/|mlruns/?$", uri):
        return (
            f"{uri} is the store of a server, and not a server; start one with "
            f"`mlflow server --backend-store-uri {uri}`, and set its address, such as "
            "http://127.0.0.1:5000"
        )
    if re.match(r"databricks(:|$)|uc:", uri):
        return f"{uri} has no host, and runs are sent to MLflow's own server only; {example}"
    if "://" not in uri and re.fullmatch(r"[\w.-]+(:\d+)?(/\S*)?|\[[\da-f:]+\](:\d+)?", uri):
        return f"{uri} has no scheme; write http://{uri}"
    if not parts.scheme:
        return f"{uri} has no scheme; {example}"
    return f"{uri} has the scheme {parts.scheme}; {example}"
