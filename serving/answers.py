"""Predictions for a stream of reviews: batches of bounded size in, one line for each review out."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, TextIO

from core.errors import not_utf8
from preprocessing.features import CLASSES
from serving.predictor import Prediction

MAX_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 18
_BATCH_LINES = 1024
_SPACES = bytes.maketrans(b"\t\n\r", b"   ")


class Text(NamedTuple):
    """A review from an input.

    Attributes:
      place: the place of the review in the input, such as `line 3`.
      content: UTF-8.
      problem: the reason why the review cannot be used; empty if it can be used.
    """

    place: str
    content: bytes
    problem: str = ""


def read_lines(stream: TextIO | None) -> Iterator[list[Text]]:
    """Yield the lines of `stream` in batches, without blank lines.

    A batch holds the lines that have arrived, at most 1024. So a user who types or pipes lines
    slowly gets each prediction at once. Memory grows neither with the stream nor with the length
    of a line.

    Args:
      stream: standard input, of which the bytes are read; None if it is closed.
    """
    if stream is None:
        return
    number = 0
    tail: bytes | None = b""  # the unfinished line; None once it is too long
    while chunk := stream.buffer.read1(_READ_BYTES):  # type: ignore[attr-defined]
        first, *others = chunk.split(b"\n")
        tail = _within(tail, first)
        if not others:
            continue
        lines = [tail, *others[:-1]]
        tail = _within(b"", others[-1])
        yield from _batches(lines, number + 1)
        number += len(lines)
    yield from _batches([tail], number + 1)


def read_arguments(texts: Sequence[str]) -> Iterator[list[Text]]:
    """Yield the arguments of a command as one batch."""
    # `fsencode` returns the bytes that the shell passed, even if Python could not decode them.
    places = [(f"argument {n}", os.fsencode(text)) for n, text in enumerate(texts, 1)]
    yield [_text(place, text) or Text(place, b"", "blank") for place, text in places]


def answer(
    batches: Iterable[list[Text]],
    predict: Callable[[list[bytes]], list[Prediction]],
    out: BinaryIO,
    report: Callable[[str], object],
    as_json: bool = False,
) -> int:
    """Write one line for each review, in the order of the reviews.

    The line is `LABEL<tab>PROBABILITY<tab>REVIEW`, in which a tab or a line break of the review is
    a space, or a JSON object. A text that cannot be used has the label and the probability `-`,
    in JSON null.

    Args:
      batches: the reviews. The predictions of a batch are written before the next one is read.
      predict: reviews, UTF-8 -> their predictions.
      out: the output, flushed after each batch.
      report: called with one line for each text that cannot be used.
      as_json: whether to write JSON.

    Returns:
      The number of texts that could not be used.

    Raises:
      BrokenPipeError: the reader of `out` has closed it.
    """
    unusable = 0
    for batch in batches:
        contents = [text.content for text in batch if not text.problem]
        predictions = iter(predict(contents) if contents else ())
        for text in batch:
            if text.problem:
                unusable += 1
                report(f"{text.place}: {text.problem}")
            prediction = None if text.problem else next(predictions)
            out.write((_json if as_json else _row)(text, prediction) + b"\n")
        out.flush()
    return unusable


def _row(text: Text, prediction: Prediction | None) -> bytes:
    start = f"{CLASSES[prediction.label]}\t{prediction.probability:.3f}" if prediction else "-\t-"
    return f"{start}\t".encode() + _shown(text).encode().translate(_SPACES)


def _json(text: Text, prediction: Prediction | None) -> bytes:
    line: dict[str, Any] = {"label": None, "probability": None}
    if prediction:
        # A running server and this process print the same digits of a float32.
        probability = round(prediction.probability, 6)
        line = {"label": CLASSES[prediction.label], "probability": probability}
    line["text"] = _shown(text)
    return json.dumps({**line, "problem": text.problem} if text.problem else line).encode()


def _shown(text: Text) -> str:
    return text.content.decode("utf-8", "backslashreplace")


def _batches(lines: Sequence[bytes | None], first: int) -> Iterator[list[Text]]:
    found = [_text(f"line {number}", line) for number, line in enumerate(lines, first)]
    texts = [text for text in found if text]
    for start in range(0, len(texts), _BATCH_LINES):
        yield texts[start : start + _BATCH_LINES]


def _text(place: str, line: bytes | None) -> Text | None:
    """Return the review in a line; None if the line is blank."""
    if line is None:
        return Text(place, b"", f"longer than {MAX_LINE_BYTES:,} bytes, shorten it")
    line = line.removesuffix(b"\r")
    if place == "line 1":
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return Text(place, line) if line.decode().strip() else None
    except UnicodeDecodeError as error:
        return Text(place, line, not_utf8(error))


def _within(tail: bytes | None, more: bytes) -> bytes | None:
    if tail is None or len(tail) + len(more) > MAX_LINE_BYTES:
        return None
    return tail + more
