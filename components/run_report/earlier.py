"""The runs before a run: the last ones, and the one whose model is served."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ml_metadata import MetadataStore

from components.destination import baseline_name
from components.run_report.history import OUTCOME, SETTINGS, Run, newest_first, read_contexts

RECENT = 30
"""Maximum number of earlier runs in the picture of a report."""
_DESTINATION = ("push", "vertex", "kubeflow")
"""The sections of the settings that decide where a model is pushed to, beside `paths.serving`."""


class Earlier(NamedTuple):
    """The runs before a run.

    Attributes:
      recent: the last runs before it, the newest first.
      served: the run that pushed the served model; None if it is unknown.
      recorded: whether there is a record of earlier runs. A cluster has none.
    """

    recent: Sequence[Run] = ()
    served: Run | None = None
    recorded: bool = True


def read_earlier(store: MetadataStore, run: Run) -> Earlier:
    """Return the runs before a run.

    Args:
      store: ML Metadata with the runs.
      run: the run.

    Raises:
      InputError: the recorded outcome of a run cannot be read.
    """
    contexts = newest_first(store)
    names = [context.name for context in contexts]
    older = contexts[names.index(run.id) + 1 :] if run.id in names else []

    def pushed_served(context: Any) -> bool:
        # Not the whole runs: reading thousands of them takes many seconds.
        outcome, settings = (
            json.loads(context.custom_properties[key].string_value or "{}")
            for key in (OUTCOME, SETTINGS)
        )
        return _is_same_model(run.baseline, run.settings, outcome.get("pushed_to", ""), settings)

    served = [context for context in older if pushed_served(context)][:1] if run.baseline else []
    found = read_contexts(store, [*older[:RECENT], *served])
    return Earlier(found[: len(found) - len(served)], found[-1] if served else None)


def is_baseline(before: Run, after: Run) -> bool:
    """Return whether the model that `before` pushed is the baseline of `after`."""
    return _is_same_model(after.baseline, after.settings, before.pushed_to, before.settings)


def _is_same_model(
    baseline: str, settings: Mapping[str, Any], pushed_to: str, pushed_by: Mapping[str, Any]
) -> bool:
    """Return whether a run pushed a baseline.

    Args:
      baseline: the name of the baseline.
      settings: the settings of the run that has this baseline.
      pushed_to: the location that the other run pushed its model to; empty if it pushed none.
      pushed_by: the settings of the other run.
    """
    is_named = baseline == baseline_name(os.path.basename(pushed_to.rstrip("/")))
    return is_named and _destination_settings(settings) == _destination_settings(pushed_by)


def _destination_settings(settings: Mapping[str, Any]) -> list[Any]:
    """Return the values of the settings that decide where a run pushes its model."""
    serving = settings.get("paths", {}).get("serving")
    return [serving, *(settings.get(section) for section in _DESTINATION)]
