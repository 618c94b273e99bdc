"""Names that components and commands agree on, such as properties of artifacts; imports no TFX."""

from __future__ import annotations

BLESSED_PROPERTY = "blessed"
"""The property of a blessing with 1 if the model passed, else 0. TFX's Pusher reads it too."""
CAUSE_PROPERTY = "cause"
"""The property with the reason why the model failed the serving check; empty if it passed."""
NOT_CHECKED_PROPERTY = "not_checked"
"""The property with the checks that the serving check skipped, and the reason; empty if none."""
BASELINE_PROPERTY = "baseline"
"""The property with the name of the baseline: of its Model, and of the blessing of a candidate."""
READING_PROPERTY = "reading"
"""The property of RejectedLines with the format, columns and scale of the files, in a few lines."""
NEWEST_SPAN_PROPERTY = "newest_span"
"""The property of RejectedLines with the name of the newest span that was read; empty for an input
without spans."""
UNSEEN_SPAN_PROPERTY = "unseen_span"
"""The property of transformed Examples with the number of the first span of which the train split
has no text. In a window of several spans it is the newest one, which is the test split."""
UNUSED_PROPERTY = "unused"
"""The property of RejectedLines with a line for each of the first files without a usable line."""
CLASSES_PROPERTY = "classes"
"""The property of RejectedLines with lines about the classes: their number and the first names, the
labels that are left out, and what may be a mistake; empty for sentiment."""
CODE_KEY = "code"
"""The execution property with the fingerprint of a component's code, which is a part of its cache
key. The pipeline adds it."""
PUSHED, PUSHED_DESTINATION, PUSHED_VERSION = "pushed", "pushed_destination", "pushed_version"
"""The properties of TFX's `PushedModel`: 1 if the model was pushed, its location and version."""
TRACKING = "AMAZON_REVIEWS_TRACKING"
"""The environment variable with the tracking server of a run, as JSON. A platform sets it for the
processes of a run. It is not a parameter of a component, because it affects no output."""
COMPONENT_FILE = "AMAZON_REVIEWS_COMPONENT_FILE"
"""The environment variable with the file of a project's component, as JSON. A compiled pipeline
sets it for the step of the component."""
RUN_PARAMETERS = {
    "input_base": "data",
    "span": "data",
    "epochs": "training",
    "strategy": "training",
    "min_accuracy": "evaluation",
}
"""Parameter of a run -> the section of the settings that contains the key of the same name. A
submission of the compiled pipeline can set these keys."""
