"""ReviewExampleGen on small files, for the tests of the components of the data."""

import json
from collections import Counter
from functools import cached_property
from pathlib import Path

import tensorflow as tf
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from components.artifacts import RejectedLines
from components.line_counts import SPLITS
from components.review_example_gen.component import ReviewExampleGenExecutor

THREADS = ("--direct_running_mode=multi_threading", "--direct_num_workers=3")


def line(number, label=1):
    return f"__label__{label} Title {number}: body {number}"


def write(folder, name, lines):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{text}\n" for text in lines))
    return folder


def read_files(folder, inputs, patterns=None, runner=(), span="newest", **options):
    """Return one execution on the files of these globs, in the folder."""
    options = {"patterns": patterns or {"all": "*"}, "max_rejected_fraction": 0.5, **options}
    properties = {"input_base": str(inputs), "span": span, "options": json.dumps(options)}
    return Read(folder, properties, runner)


def records(examples, split):
    """Return the serialized Examples of a split."""
    files = sorted(str(path) for path in Path(examples.uri, f"Split-{split}").iterdir())
    assert files, f"{split} has no file"
    return [record.numpy() for record in tf.data.TFRecordDataset(files, "GZIP")]


def text_of(example):
    return example.features.feature["text"].bytes_list.value[0]


def label_of(example):
    (label,) = example.features.feature["label"].int64_list.value
    return label


class Read:
    """One execution with these properties: its Examples by split, and the counts."""

    def __init__(self, folder, properties, runner=()):
        self.examples, rejected = standard_artifacts.Examples(), RejectedLines()
        self.examples.uri, rejected.uri = str(folder / "examples"), str(folder / "rejected")
        context = BaseBeamExecutor.Context(
            beam_pipeline_args=[*runner], tmp_dir=str(folder / "tmp")
        )
        outputs = {"examples": [self.examples], "rejected": [rejected]}
        ReviewExampleGenExecutor(context).Do({}, outputs, properties)
        self.reading = rejected.get_string_custom_property("reading")
        self.classes = rejected.get_string_custom_property("classes").splitlines()
        self.unused = rejected.get_string_custom_property("unused")
        self.counts = json.loads(Path(rejected.uri, "summary.json").read_text())
        files = Path(rejected.uri, "files.jsonl").read_text().splitlines()
        self.by_file = {Path(counts.pop("file")).name: counts for counts in map(json.loads, files)}
        lines = [path.read_text() for path in Path(rejected.uri).glob("lines*")]
        self.rejected = [json.loads(line) for line in "".join(lines).splitlines()]

    @cached_property
    def splits(self):
        """Split -> its Examples."""
        return {
            split: [tf.train.Example.FromString(record) for record in records(self.examples, split)]
            for split in SPLITS
        }

    def texts(self, split):
        return Counter(map(text_of, self.splits[split]))

    def content(self, split):
        return Counter((label_of(example), text_of(example)) for example in self.splits[split])

    def places(self):
        """Return (file, position, reason) of the rejected lines."""
        return Counter((Path(r["file"]).name, r["position"], r["reason"]) for r in self.rejected)
