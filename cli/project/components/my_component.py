"""my_component: writes the share of each class in each split.

Each file in this folder is a component, which runs before the push; if it fails, nothing is pushed.
The guide "Add a component" describes what it can read. `@component` requires annotations that are
types, so this file has no `from __future__ import annotations`, which turns them into strings.
"""

import json
import os

import numpy as np
import tensorflow as tf
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples

from components.artifacts import ProjectOutput
from pipeline.outputs import Outputs
from preprocessing import features
from preprocessing.labels import Labels, read_labels

_BATCH = 1024


def create(outputs: Outputs) -> BaseComponent:
    """Return the component; its inputs are some of the `outputs` of the pipeline."""
    return ClassShares(examples=outputs.examples)


@component
def ClassShares(examples: InputArtifact[Examples], shares: OutputArtifact[ProjectOutput]) -> None:
    """Write the share of each class in each split to `shares`.

    Args:
      examples: Examples with the feature `label`, and with the names of the classes.
      shares: the output, with split -> class -> share as JSON.
    """
    labels = read_labels(examples.uri)
    splits = artifact_utils.decode_split_names(examples.split_names)
    found = {
        split: _shares(artifact_utils.get_split_uri([examples], split), labels) for split in splits
    }
    fileio.makedirs(shares.uri)
    with fileio.open(os.path.join(shares.uri, "shares.json"), "w") as file:
        file.write(json.dumps(found))


def _shares(folder: str, labels: Labels) -> dict[str, float]:
    """Return class -> its share of the Examples in the gzipped TFRecords of a folder."""
    files = fileio.glob(os.path.join(folder, "*"))
    spec = {features.LABEL: tf.io.FixedLenFeature([1], tf.int64)}
    counts = np.zeros(labels.number, np.int64)
    for batch in tf.data.TFRecordDataset(files, compression_type="GZIP").batch(_BATCH):
        found = tf.io.parse_example(batch, spec)[features.LABEL].numpy()
        counts += np.bincount(found[:, 0], minlength=labels.number)
    shares = counts / max(counts.sum(), 1)
    return dict(zip(labels.names, shares.tolist(), strict=True))
