"""Run the preset `topics` on many generated texts of many classes, and ask its model.

    python -m benchmarks.many_classes [--classes N] [--texts N] [--set KEY=VALUE] [--json FILE]

N is [1000] classes and [1000000] texts, a tenth of which are the test split. A text has 6 to 14
words. Most of them are drawn from 20,000 words by Zipf's law, which all classes have in common.
Two to four are words of the class, of which each class has twelve and shares each with other
classes. One text in fifty has the words of another class, so the best possible accuracy is 0.98.

The run is `amazon-reviews run` in one process. Peak memory is that of all its processes together.
Then the model is loaded as `amazon-reviews serve` loads it, and predicts texts of the test split.
Seconds depend on the machine and its load.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import usage, whole

_COMMON_WORDS = 20_000
_CLASS_WORDS = 12
_SHARED = 4
"""The number of classes that share a word of a class."""
_MISLABELLED = 0.02
_CALLS = 500
SPLITS = {"train": "train.csv", "test": "test.csv"}


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        inputs = scratch / "input"
        inputs.mkdir()
        tests = arguments.texts // 10
        draw = Draw(arguments.classes, seed=0)
        draw.write(inputs / SPLITS["train"], arguments.texts - tests)
        texts = draw.write(inputs / SPLITS["test"], tests)
        settings = [f"data.splits={json.dumps(SPLITS)}", *arguments.set]
        figures = whole.run(inputs, scratch / "run", settings, scratch / "log", preset="topics")
        figures["limits"] = {"reviews": arguments.texts}
        figures |= _answers(scratch / "run" / "serving", texts)
    console.print(whole.components_table(figures))
    console.print(
        f"{arguments.classes:,} classes; accuracy {figures['accuracy']:.4f}; "
        f"peak memory {figures['memory'] / usage.MEBIBYTE:,.0f} MiB"
    )
    console.print(
        f"the model loads in {figures['load_s']:.1f} s; a text takes {figures['p50_ms']:.1f} ms "
        f"(p50) and {figures['p99_ms']:.1f} ms (p99), {tests:,} texts {figures['batch_s']:.1f} s"
    )
    usage.print_machine(console, "generated texts")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=1_000_000)
    return parser.parse_args()


class Draw:
    """Texts of classes, drawn at random.

    Args:
      classes: the number of classes.
      seed: determines all texts.
    """

    def __init__(self, classes: int, seed: int):
        self._random = np.random.default_rng(seed)
        self._classes = classes
        words = classes * _CLASS_WORDS // _SHARED
        # Each word of a class belongs to `_SHARED` classes.
        slots = np.tile(np.arange(words), _SHARED)[: classes * _CLASS_WORDS]
        self._class_words = self._random.permutation(slots).reshape(classes, _CLASS_WORDS)
        frequencies = 1 / np.arange(1, _COMMON_WORDS + 1)
        self._common = np.cumsum(frequencies / frequencies.sum())

    def write(self, file: Path, texts: int) -> list[str]:
        """Write a CSV file with the columns `label` and `text`; return the texts."""
        random = self._random
        labels = random.integers(self._classes, size=texts)
        topics = np.where(
            random.random(texts) < _MISLABELLED, random.integers(self._classes, size=texts), labels
        )
        found = []
        with file.open("w", encoding="utf-8", newline="\n") as out:
            out.write("label,text\n")
            for label, topic in zip(labels.tolist(), topics.tolist(), strict=True):
                found.append(self._text(topic))
                out.write(f"topic {label},{found[-1]}\n")
        return found

    def _text(self, topic: int) -> str:
        random = self._random
        common = np.searchsorted(self._common, random.random(random.integers(4, 11)))
        words = [f"w{word}" for word in np.minimum(common, _COMMON_WORDS - 1)]
        own = random.choice(self._class_words[topic], random.integers(2, 5), replace=False)
        words += [f"topicword{word}" for word in own]
        random.shuffle(words)
        return " ".join(words)


def _answers(serving: Path, texts: list[str]) -> dict[str, Any]:
    """Load the pushed model in this process, and measure its answers."""
    from serving.predict_text import load_predict_text
    from serving.versions import newest_complete

    start = time.perf_counter()
    predict = load_predict_text(newest_complete(str(serving)))
    loaded = time.perf_counter()
    seconds = []
    for text in texts[:_CALLS]:
        begin = time.perf_counter()
        predict([text.encode()])
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for first in range(0, len(texts), 1024):
        predict([text.encode() for text in texts[first : first + 1024]])
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return {
        "load_s": loaded - start,
        "p50_ms": p50,
        "p99_ms": p99,
        "batch_s": time.perf_counter() - begin,
    }


if __name__ == "__main__":
    main()
