"""The text keys of eval and test files, with which each worker finds duplicates in other files.

They are joined by broadcast: every worker gets all of them, 8 bytes for each review of these files.
100 million held-out reviews take 0.8 GB in a worker, and up to 3.3 GB while `JoinHeldOut` sorts.
Without files for eval and test a hash of the text decides the split, and there are no such keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
import numpy as np

from components.review_example_gen import splits
from components.review_example_gen.units import Source, Unit, in_units
from components.tfrecords import cores
from preprocessing.reading.files import HELD_OUT
from preprocessing.reading.read import read_batches

_KEYS_AT_ONCE = 1 << 20
"""Keys of an element: by default, no element may be larger than the sort buffer of Flink."""


def find_held_out(pipeline: beam.Pipeline, sources: list[Source]) -> Any:
    """Return a `splits.HeldOut`, or the side input of one; without held-out files none is read."""
    held_out = [source for source in sources if source.group in HELD_OUT]
    if not held_out:
        return {}
    keys = (
        pipeline
        | "HeldOutUnits" >> beam.Create(in_units(held_out), reshuffle=True)
        | "HeldOutKeys" >> beam.FlatMap(_read_keys)
    )
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleHeldOut" >> beam.Create([None])
        | "JoinHeldOut"
        >> beam.Map(lambda _, found: splits.held_out_keys(found), beam.pvalue.AsList(keys))
    )


def _read_keys(unit: Unit) -> Iterator[tuple[str, np.ndarray]]:
    """Yield groups, and the `text_keys` of some of their reviews in the unit."""
    with ThreadPoolExecutor(cores()) as pool:
        for group, piece in unit.sources:
            found = [splits.text_keys(batch.texts) for batch in read_batches(piece, pool)]
            keys = np.unique(np.concatenate([splits.text_keys([]), *found]))
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                yield group, keys[start : start + _KEYS_AT_ONCE]
