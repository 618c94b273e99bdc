"""Evidently's text drift for `benchmarks.drift`, in an environment of its own.

Reads a JSON array with the old and the new texts in each line, and prints true or false.
"""

from __future__ import annotations

import json
import sys

import pandas as pd  # type: ignore[import-untyped]
from evidently.legacy.utils.data_drift_utils import (  # type: ignore[import-not-found]
    calculate_text_drift_score,
)

for line in sys.stdin:
    old, new = map(pd.Series, json.loads(line))
    # The test and the threshold that Evidently chooses for at most 1,000 old texts.
    _, is_drift = calculate_text_drift_score(old, new, bootstrap=True, p_value=0.05)
    print(json.dumps(bool(is_drift)), flush=True)
