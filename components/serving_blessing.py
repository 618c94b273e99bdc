"""The files and custom properties of the blessing of a ServingCheck."""

from __future__ import annotations

BLESSED_PROPERTY = "blessed"
"""1 if the model passed, else 0. TFX's Pusher reads this property."""
CAUSE_PROPERTY = "cause"
"""The reason for which the model did not pass, in one line; empty if it passed."""
CHECK_FILE = "check.json"
"""The file with all results."""
