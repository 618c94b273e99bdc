"""Executor of ReviewExampleGen: one Beam pipeline from raw files to split, sharded Examples."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import apache_beam as beam
from absl import logging
from apache_beam.io.filesystems import FileSystems
from tfx import types
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import proto_utils

import sample_data
from components.review_example_gen import splits, stages
from preprocessing.errors import InputError
from preprocessing.files import find_files
from preprocessing.readers import ReadOptions

OPTIONS_KEY = "options"
REJECTED_KEY = "rejected"
SAMPLE = "sample"
"""As `input_base`: the sample of this installation, wherever it lies."""
SUMMARY_FILE = "summary.json"
LINES_PREFIX = "lines"

_BYTES_PER_SHARD = 16 << 20
_MAX_SHARDS_PER_FILE = 256
_PACKED = {".bz2": 3.6, ".gz": 2.8, ".zst": 3.0, ".parquet": 2.0}
"""How much larger review text is than these files; only decides how many shards are made."""
_SHOWN = 5


class Executor(base_beam_executor.BaseBeamExecutor):
    """Reads review files and writes Examples, the lines it could not use, and a summary."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor.

        Raises:
          InputError: there is nothing to read, too many lines cannot be used, or no review is
            left for training.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        options = json.loads(exec_properties[OPTIONS_KEY])
        sources = _source_files(exec_properties)
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        rejected = artifact_utils.get_single_instance(output_dict[REJECTED_KEY])
        examples.split_names = artifact_utils.encode_split_names(list(splits.SPLITS))
        scratch = os.path.join(examples.uri, "unpublished")
        fileio.makedirs(scratch)
        fileio.makedirs(rejected.uri)

        folders = {
            split: artifact_utils.get_split_uri([examples], split) for split in splits.SPLITS
        }
        self._read_and_write(sources, options, folders, rejected.uri, scratch)

        fileio.rmtree(scratch)
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(examples, "tfrecords_gzip")
        # Beam's workers may be other processes or machines: counts come back through a file.
        counts = _read_counts(rejected.uri)
        logging.info("Lines read: %s", dict(counts))
        _check(counts, options["max_rejected_fraction"], rejected.uri)
        _publish_summary(counts, rejected)

    def _read_and_write(
        self,
        sources: list[stages.SourceFile],
        options: dict[str, Any],
        folders: dict[str, str],
        rejected_uri: str,
        scratch: str,
    ) -> None:
        named = frozenset(source.group for source in sources) & set(splits.SPLITS)
        routing = stages.Routing(ReadOptions(**options["read"]), named)
        max_examples = options["max_examples"]
        with self._make_beam_pipeline() as pipeline:
            held_out = _held_out(pipeline, sources, routing)
            last_rank = _last_rank(pipeline, sources, routing, held_out, max_examples)
            read = (
                pipeline
                | "Files" >> beam.Create(sources, reshuffle=True)
                | "ReadReviews"
                >> beam.ParDo(stages.ReadReviews(routing), held_out, last_rank).with_outputs(
                    stages.REJECTED, stages.COUNTS, main="examples"
                )
            )
            written = read["examples"] | "WriteShards" >> beam.ParDo(stages.WriteShards(scratch))
            for split, folder in folders.items():
                _ = (
                    pipeline
                    | f"Sole[{split}]" >> beam.Create([folder])
                    | f"Publish[{split}]"
                    >> beam.Map(
                        stages.publish_shards,
                        beam.pvalue.AsList(
                            written
                            | f"Shards[{split}]" >> beam.Filter(lambda e, s=split: e[0] == s)
                            | f"Paths[{split}]" >> beam.Values()
                        ),
                    )
                )
            _ = (
                read[stages.REJECTED]
                | "RejectedToJson" >> beam.Map(json.dumps)
                | "WriteRejected"
                >> beam.io.WriteToText(
                    os.path.join(rejected_uri, LINES_PREFIX), file_name_suffix=".jsonl"
                )
            )
            _ = (
                read[stages.COUNTS]
                | "AddCounts" >> beam.CombineGlobally(stages.add_counters)
                | "WriteCounts" >> beam.Map(_write_json, os.path.join(rejected_uri, SUMMARY_FILE))
            )


def _source_files(exec_properties: dict[str, Any]) -> list[stages.SourceFile]:
    input_config = example_gen_pb2.Input()
    proto_utils.json_to_proto(
        exec_properties[standard_component_specs.INPUT_CONFIG_KEY], input_config
    )
    base = exec_properties[standard_component_specs.INPUT_BASE_KEY]
    if base == SAMPLE:
        base = os.path.dirname(sample_data.__file__)
    return [
        stages.SourceFile(split.name, path, _shards(path))
        for split in input_config.splits
        for path in find_files(base, split.pattern)
    ]


def _shards(path: str) -> int:
    """Enough that one shard can be shuffled in memory, few enough that files stay large."""
    size = FileSystems.match([path])[0].metadata_list[0].size_in_bytes
    factor = _PACKED.get(os.path.splitext(path)[1], 1.0)
    return int(min(max(size * factor / _BYTES_PER_SHARD, 1), _MAX_SHARDS_PER_FILE))


def _held_out(
    pipeline: beam.Pipeline, sources: list[stages.SourceFile], routing: stages.Routing
) -> beam.pvalue.AsSingleton:
    """The text keys of named eval and test files; empty, and nothing is read, without any."""
    files = [source for source in sources if source.group in splits.HELD_OUT]
    keys = (
        pipeline
        | "HeldOutFiles" >> beam.Create(files, reshuffle=True)
        | "HeldOutKeys" >> beam.ParDo(stages.HeldOutKeys(routing))
        | "GroupHeldOut" >> beam.GroupByKey()
    )
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleHeldOut" >> beam.Create([None])
        | "JoinHeldOut"
        >> beam.Map(lambda _, pieces: splits.held_out_keys(pieces), beam.pvalue.AsDict(keys))
    )


def _last_rank(
    pipeline: beam.Pipeline,
    sources: list[stages.SourceFile],
    routing: stages.Routing,
    held_out: beam.pvalue.AsSingleton,
    max_examples: dict[str, int],
) -> beam.pvalue.AsSingleton:
    """Where each capped split ends; empty, and nothing is read, without a cap."""
    ranks = (
        pipeline
        | "RankedFiles" >> beam.Create(sources if max_examples else [], reshuffle=True)
        | "RankKeys" >> beam.ParDo(stages.RankKeys(routing), held_out)
        | "GroupRanks" >> beam.GroupByKey()
    )
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleRanks" >> beam.Create([None])
        | "LastRanks"
        >> beam.Map(
            lambda _, pieces: splits.last_ranks(pieces, max_examples), beam.pvalue.AsDict(ranks)
        )
    )


def _write_json(value: Any, path: str) -> None:
    with fileio.open(path, "w") as file:
        file.write(json.dumps(value, indent=2, sort_keys=True))


def _read_counts(rejected_uri: str) -> Counter[str]:
    with fileio.open(os.path.join(rejected_uri, SUMMARY_FILE)) as file:
        return Counter(json.loads(file.read()))


def _check(counts: Counter[str], max_rejected_fraction: float, rejected_uri: str) -> None:
    """Refuses input of which too much is unusable; readable duplicates do not count as such."""
    total = counts.total()
    duplicates = counts[f"rejected/{stages.DUPLICATE}"]
    rejected = sum(n for name, n in counts.items() if name.startswith("rejected/")) - duplicates
    if rejected > max_rejected_fraction * total:
        raise InputError(
            f"{rejected} of {total} lines ({rejected / total:.1%}) cannot be used, more than "
            f"data.max_rejected_fraction ({max_rejected_fraction:g}) allows; the first: "
            + "; ".join(_first_rejected(rejected_uri))
        )
    if not counts["examples/train"]:
        raise InputError(
            f"no review is left for training: of {total} lines {rejected} were rejected, "
            f"{counts['neutral']} neutral, {duplicates} duplicates of held-out reviews"
        )


def _first_rejected(rejected_uri: str) -> list[str]:
    lines = []
    for path in fileio.glob(os.path.join(rejected_uri, LINES_PREFIX + "*")):
        with fileio.open(path) as file:
            lines += [json.loads(line) for line in file.read().splitlines()]
    lines.sort(key=lambda line: (line["file"], line["position"]))
    return [
        f"{os.path.basename(line['file'])}:{line['position']} {line['reason']} ({line['detail']})"
        for line in lines
        if line["reason"] != stages.DUPLICATE
    ][:_SHOWN]


def _publish_summary(counts: Counter[str], rejected: types.Artifact) -> None:
    for name, count in counts.items():
        rejected.set_int_custom_property(name.replace("/", "_"), count)
