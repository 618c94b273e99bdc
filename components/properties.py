"""The custom properties and files of artifacts that several packages read; imports no TFX."""

from __future__ import annotations

BLESSED_PROPERTY = "blessed"
"""1 if the model passed the serving check, else 0. TFX's Pusher reads this property."""
CAUSE_PROPERTY = "cause"
"""The reason for which the model did not pass, in one line; empty if it passed."""
NOT_CHECKED_PROPERTY = "not_checked"
"""What the serving check left out and why, in one line; empty if it checked everything."""
CHECK_FILE = "check.json"
"""The file with all results of the serving check."""
BASELINE_PROPERTY = "baseline"
"""The name of a baseline in its Model, and in the blessing of a model that was compared with it."""
READING_PROPERTY = "reading"
"""The property of RejectedLines with the format, columns and scale of the files, in a few lines."""
UNUSED_PROPERTY = "unused"
"""The property of RejectedLines with a line for each of the first files without a usable line."""
PUSHED, PUSHED_DESTINATION = "pushed", "pushed_destination"
"""The properties of TFX's `PushedModel` with 1, if the model was pushed, and its folder."""
TRACKING = "AMAZON_REVIEWS_TRACKING"
"""The environment variable with the tracking server of a run, as JSON. A platform sets it for the
processes of a run. It is no property of a component, because it does not affect any output."""
REPORT_NODE = "RunReport"
"""Id of the node that writes the report of a run."""
RUN_PARAMETERS = {
    "input_base": "data",
    "epochs": "training",
    "strategy": "training",
    "min_accuracy": "evaluation",
}
"""Parameter of a run -> the section of the settings that contains the key of the same name. A
submission of the compiled pipeline can set these keys."""
