"""Examples artifacts of TFX: the files and texts of their splits, and the publication of files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf
from apache_beam.io.filesystems import FileSystems
from tfx import types
from tfx.components.example_gen.utils import SPAN_PROPERTY_NAME
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from examples.tfrecords import example_files, write_example_counts
from examples.writer import ShardWriter, text_level
from preprocessing import features

_SPANS_FILE = "spans.json"
SAMPLE_SIZE = 1000
"""Maximum number of test Examples in the sample that the Evaluator and ServingCheck both score."""


def split_files(examples: list[types.Artifact], splits: Iterable[str]) -> list[str]:
    """Return the sorted TFRecord files of some splits of Examples artifacts.

    Args:
      examples: Examples artifacts, each of which has all of the splits.
      splits: the names of the splits.

    Raises:
      InputError: the files of a split were deleted.
      ValueError: an artifact has no such split.
      tensorflow.errors.OpError: a folder cannot be listed.
    """
    folders = [uri for split in splits for uri in artifact_utils.get_split_uris(examples, split)]
    return sorted(path for folder in folders for path in example_files(folder))


def newest_span(examples: types.Artifact) -> int | None:
    """Return the number of the newest span of Examples; None if the input has no spans."""
    if not examples.has_custom_property(SPAN_PROPERTY_NAME):
        return None
    return int(examples.get_int_custom_property(SPAN_PROPERTY_NAME))


def write_spans(folder: str, spans: Mapping[str, int]) -> None:
    """Write which span each file of an Examples artifact belongs to.

    Args:
      folder: the folder of the artifact, local or remote.
      spans: path of a file -> the number of its span.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be written.
    """
    relative = {path.removeprefix(f"{folder}/"): span for path, span in spans.items()}
    with fileio.open(f"{folder}/{_SPANS_FILE}", "w") as target:
        target.write(json.dumps(relative))


def read_spans(folder: str) -> dict[str, int]:
    """Return path of a file -> the number of its span; empty if the Examples are of no window.

    Args:
      folder: the folder of the artifact, local or remote.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be read.
    """
    file = f"{folder}/{_SPANS_FILE}"
    if not fileio.exists(file):
        return {}
    with fileio.open(file) as source:
        return {f"{folder}/{path}": span for path, span in json.loads(source.read()).items()}


def example_text(example: bytes) -> bytes:
    """Return the text of a serialized Example, in UTF-8."""
    found = tf.train.Example.FromString(example).features.feature[features.TEXT]
    text: bytes = found.bytes_list.value[0]
    return text


def publish(
    examples: types.Artifact, prefix: str, shards: Mapping[str, Sequence[tuple[str, int]]]
) -> dict[str, str]:
    """Move finished files to the folders of their splits, and store the number of their Examples.

    A split without files gets one empty file, because later components require a file.

    Args:
      examples: the new artifact, whose properties are set.
      prefix: the beginning of the names of the files.
      shards: name of a split -> (path, number of Examples) of each gzipped TFRecord file.

    Returns:
      Path of each file -> its new path.

    Raises:
      apache_beam.io.filesystem.BeamIOError: a file cannot be moved.
      OSError, tensorflow.errors.OpError: a folder or a file cannot be written.
    """
    examples.split_names = artifact_utils.encode_split_names(list(shards))
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    counts: dict[str, int] = {}
    moved: dict[str, str] = {}
    for split, files in shards.items():
        fileio.makedirs(artifact_utils.get_split_uri([examples], split))
        total = max(len(files), 1)
        names = [f"Split-{split}/{prefix}-{n:05d}-of-{total:05d}.gz" for n in range(total)]
        targets = [f"{examples.uri}/{name}" for name in names]
        if files:
            FileSystems.rename([path for path, _ in files], targets)
            moved.update(zip((path for path, _ in files), targets, strict=True))
        else:
            with ThreadPoolExecutor(1) as pool:
                ShardWriter(targets[0], text_level(targets[0]), pool).close()
        counts.update(dict.fromkeys(names, 0))  # a split without Examples has an empty file
        counts.update(zip(names, (count for _, count in files), strict=False))
    write_example_counts(examples.uri, counts)
    return moved
