"""The page of the exit codes, from `core.exit_codes`."""

from __future__ import annotations

import importlib

from tools.reference.declared import NOTICE, docstrings

_EXIT_CODES = """\
# Exit codes

The exit codes of `amazon-reviews`, from `core/exit_codes.py`:

| exit code | meaning |
|---|---|
"""


_AFTER_EXIT_CODES = """
`tfx run create` ends with 0 whether the model was blessed or not, as TFX does. A training replica
on a cluster has [exit codes of its own](../how-to/kubeflow.md#a-replica-that-is-lost).
"""


def exit_codes_page() -> str:
    """Return the page of the exit codes."""
    exit_codes = importlib.import_module("core.exit_codes")
    rows = [
        f"| {getattr(exit_codes, name)} | {text} |\n"
        for name, text in docstrings(exit_codes).items()
    ]
    return NOTICE + _EXIT_CODES + "".join(rows) + _AFTER_EXIT_CODES
