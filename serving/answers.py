"""Predictions for a stream of reviews, which is read and answered in batches of bounded size."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, TextIO

from core.errors import not_utf8, visible
from preprocessing.labels import Labels

MAX_LINE_BYTES = 1 << 20
"""Greatest size of a review; a longer line is reported as a problem."""
_READ_BYTES = 1 << 18
_SPACES = str.maketrans("\t\n\r", "   ")


class Prediction(NamedTuple):
    """An answer of a model.

    Attributes:
      probability: of two classes, that of the second one; of more, that of the predicted class.
      label: the index of the predicted class.
    """

    probability: float
    label: int


class Text(NamedTuple):
    """A review.

    Attributes:
      source: the name of its line or argument in messages, such as `line 3`.
      content: its text in UTF-8; any bytes if there is a problem.
      problem: the reason why the review cannot be used; empty if there is none.
    """

    source: str
    content: bytes
    problem: str = ""


def read_lines(stream: TextIO | None) -> Iterator[list[Text]]:
    """Yield the lines of `stream` in batches, without blank lines.

    A batch contains the lines that have arrived, so a user who types or pipes lines slowly sees
    each prediction at once. The memory depends neither on the length of the stream nor on that of a
    line.

    Args:
      stream: a text stream with a byte buffer, such as `sys.stdin`; None if standard input is
        closed, which has no lines.

    Raises:
      OSError: the stream cannot be read.
    """
    number, tail = 0, b""  # the number of lines so far, and the unfinished line
    while stream and (chunk := stream.buffer.read1(_READ_BYTES)):  # type: ignore[attr-defined]
        *lines, rest = (tail + chunk).split(b"\n")
        tail = rest[: MAX_LINE_BYTES + 1]  # enough to know that the line is too long
        if texts := _texts(lines, number):
            yield texts
        number += len(lines)
    if texts := _texts([tail], number):
        yield texts


def read_arguments(texts: Sequence[str]) -> Iterator[list[Text]]:
    """Yield the arguments of a command as one batch. A blank argument has a problem."""
    # `fsencode` returns the bytes that the shell passed, even if Python could not decode them.
    sources = [(f"argument {n}", os.fsencode(text)) for n, text in enumerate(texts, 1)]
    yield [_text(source, text) or Text(source, b"", "blank") for source, text in sources]


def answer(
    batches: Iterable[list[Text]],
    predict: Callable[[list[bytes]], list[Prediction]],
    out: BinaryIO,
    report: Callable[[str], object],
    labels: Labels,
    as_json: bool = False,
) -> int:
    """Write one line for each review, in the order of the reviews.

    The predictions of a batch are written before the next batch is read.

    Args:
      batches: the reviews.
      predict: a function from texts in UTF-8 to their predictions.
      out: the output. A line is `LABEL<tab>PROBABILITY<tab>TEXT`, in which a space replaces each
        tab or line break of the label and of the text, and in which control characters are
        escaped. The label and the probability of a text that cannot be used are `-`.
      report: called with a line for each review that cannot be used.
      labels: the classes of the model.
      as_json: whether the lines are JSON objects, which have null in place of `-`.

    Returns:
      The number of reviews that could not be used.

    Raises:
      OSError: the output cannot be written; a BrokenPipeError if its reader has closed the pipe.
      Exception: the error of `predict`.
    """
    format_line = _json if as_json else _row
    unusable = 0
    for batch in batches:
        contents = [text.content for text in batch if not text.problem]
        predictions = iter(predict(contents) if contents else ())
        for text in batch:
            if text.problem:
                unusable += 1
                report(f"{text.source}: {text.problem}")
            prediction = None if text.problem else next(predictions)
            out.write(f"{format_line(text, prediction, labels)}\n".encode())
        out.flush()
    return unusable


def _row(text: Text, prediction: Prediction | None, labels: Labels) -> str:
    start = "-\t-"
    if prediction:
        name = labels.names[prediction.label].translate(_SPACES)
        start = f"{name}\t{prediction.probability:.3f}"
    return visible(f"{start}\t{_shown(text).translate(_SPACES)}")


def _json(text: Text, prediction: Prediction | None, labels: Labels) -> str:
    # A running server and this process print the same six digits of a float32.
    line: dict[str, Any] = {
        "label": labels.names[prediction.label] if prediction else None,
        "probability": round(prediction.probability, 6) if prediction else None,
        "text": _shown(text),
    }
    return json.dumps({**line, "problem": text.problem} if text.problem else line)


def _shown(text: Text) -> str:
    return text.content.decode("utf-8", "backslashreplace")


def _texts(lines: Sequence[bytes], before: int) -> list[Text]:
    found = [
        _text(f"line {number}", line, begins_file=number == 1)
        for number, line in enumerate(lines, before + 1)
    ]
    return [text for text in found if text]


def _text(source: str, line: bytes, *, begins_file: bool = False) -> Text | None:
    """Return the review in a line; None if the line is blank.

    Args:
      source: see `Text`.
      line: the line.
      begins_file: whether the line may begin with a byte order mark, which is removed.
    """
    if len(line) > MAX_LINE_BYTES:
        return Text(source, b"", f"longer than {MAX_LINE_BYTES:,} bytes, shorten it")
    line = line.removesuffix(b"\r")
    if begins_file:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return Text(source, line) if line.decode().strip() else None
    except UnicodeDecodeError as error:
        return Text(source, line, not_utf8(error))
