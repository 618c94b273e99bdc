"""Find the records of a JSON document, and write them as JSON lines.

A document is a list of objects, also inside of other objects as in the answers of servers, a table
as pandas writes it, lists of rows, or objects over several lines. A file of such answers, each with
a page of records on a line of its own, is a document too.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pipeline.data_convert.names import split_words
from preprocessing.reading.columns import KNOWN_LABELS, KNOWN_TEXTS
from preprocessing.reading.contents import LISTS
from preprocessing.reading.formats.jsonl import parse_object

_LINES, _START = 20, 9
"""Lines that show whether a file is JSON lines, and characters of a list of objects that contain
the beginning of its first object."""
_LEVELS = 4
"""The maximum number of objects around the list of records."""
_BLANK = re.compile(r"[\s,]*")
_ROW = re.compile(rb'\[\s*\[\s*(["\d\[\]{-]|true|false|null)')
"""The beginning of a list of rows. A text may begin with `[[ASIN:`."""
_KEY = re.compile(r"[\w-]+")
"""A key that is the name of a file of its records."""
_FIRST_KEY = re.compile(r'\s*\{\s*"([\w-]+)"')
"""The first key of an object."""
_LIST = re.compile(r"\[\s*(?=\{)")


def may_be_document(head: bytes, is_all: bool) -> bool:
    """Return whether a file may be a JSON document and not JSON lines.

    Args:
      head: the beginning of the file.
      is_all: whether this is the whole file.
    """
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not text.startswith((b"[", b"{")):
        return False
    first, end, rest = text.partition(b"\n")
    if not end and not is_all:
        return True  # a line of more than a MiB
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        lines = rest.split(b"\n")[:_LINES]
        objects = sum(isinstance(parse_object(1, line), dict) for line in lines)
        if 2 * objects >= max(2, len(lines)):
            return False  # JSON lines after a broken one
        begins_a_list = first.strip() == b"[" or _ROW.match(first) or b"{" in first[:_START]
        return first.startswith(b"{") or bool(begins_a_list)
    if isinstance(value, dict):
        # A line of its own is a record, unless it contains records.
        if not rest.strip():
            return len(find_records([value])) > 1
        complete = rest if is_all else rest.rpartition(b"\n")[0]
        lines = complete.split(b"\n")[:_LINES]
        pages = [parse_object(1, line) for line in lines if line.strip()]
        return all(map(_is_page, [value, *pages]))
    return bool(find_records([value]))


def read_records(content: bytes, is_all: bool) -> list[dict[str, Any]]:
    """Return the records of a document; empty if there are none.

    Args:
      content: the document in UTF-8, or its beginning.
      is_all: whether this is the whole document. If not, the complete objects of its first list of
        objects are the records.

    Raises:
      ValueError: the whole document is not valid JSON.
      RecursionError: one of several values has too many levels. A single value with too many has no
        records.
    """
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    if not is_all:
        start = _LIST.search(text)
        return list(_values(text, start.end())) if start else []
    try:
        values = [json.loads(text)]
    except RecursionError:
        return []
    except json.JSONDecodeError:
        values = list(_values(text, 0, is_all=True))
    return find_records(values)


def find_records(values: list[Any]) -> list[dict[str, Any]]:
    """Return the records in the values of a document, which has one value unless it has several.

    Args:
      values: the values, one after the other.
    """
    if len(values) == 1:
        return _records(values[0], _LEVELS) or _without_names(values[0])
    if values and all(map(_is_page, values)):
        return [record for page in values for record in _records(page, 1)]
    if values and all(isinstance(value, dict) for value in values):
        return values
    lists = [value for value in values if isinstance(value, list)]
    return _records([one for value in lists for one in value], 1)


def find_splits(content: bytes) -> dict[str, list[dict[str, Any]]]:
    """Return key -> records of a document with records for each of several splits.

    It is empty for another document. CLINC150 has the keys `train`, `oos_train`, `val` and so on.

    Args:
      content: the whole document in UTF-8, of which `read_records` returns records.
    """
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    first = _FIRST_KEY.match(text)
    if first is None or not split_words(first[1]):
        return {}  # most documents are not parsed twice
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if len(value) < 2:
        return {}
    if not all(_KEY.fullmatch(key) and split_words(key) for key in value):
        return {}
    found = {key: find_records([records]) for key, records in value.items()}
    return _with_names(found) if all(found.values()) else {}


def _with_names(parts: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the records of two columns without names with the keys `label` and `text`.

    The labels repeat more often than the texts. A part may have one label alone. Other records stay
    as they are.

    Args:
      parts: name of a part -> its records.
    """
    records = [record for part in parts.values() for record in part]
    if any(list(record) != ["column1", "column2"] for record in records):
        return parts
    if not all(isinstance(value, str) for record in records for value in record.values()):
        return parts
    first, second = (len({record[name] for record in records}) for name in records[0])
    names = ("label", "text") if first < second else ("text", "label")
    return {
        key: [dict(zip(names, record.values(), strict=True)) for record in part]
        for key, part in parts.items()
    }


def write_lines(records: list[dict[str, Any]], file: TextIO) -> None:
    """Write records as JSON lines; the names of nested values contain dots.

    A half of a surrogate pair, as in a text that was cut, becomes a question mark.

    Args:
      records: the records.
      file: the new file.
    """
    for record in records:
        text = json.dumps(dict(_flat(record)), ensure_ascii=False)
        file.write(text.encode("utf-8", "replace").decode() + "\n")


def _values(text: str, start: int, is_all: bool = False) -> Iterator[Any]:
    """Yield the values from a position on, up to the first one that is not complete.

    Raises:
      ValueError: with `is_all`, something else follows the last value.
      RecursionError: with `is_all`, a value has too many levels.
    """
    decoder = json.JSONDecoder()
    while True:
        blank = _BLANK.match(text, start)
        start = blank.end() if blank else start
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if is_all and start < len(text):
                raise
            return
        yield value


def _records(value: Any, levels: int) -> list[dict[str, Any]]:
    if isinstance(value, list):
        objects = [one for one in value if isinstance(one, dict)]
        if objects and len(objects) == len(value):
            return objects
        if _are_rows(value) and _are_names(value[0], value[1:]):
            return [dict(zip(value[0], row, strict=True)) for row in value[1:]]
        return []
    if not isinstance(value, dict) or not levels:
        return []
    if table := _table(value):
        return table
    columns = list(value.values())
    if _are_columns(columns):
        return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    lists = [found for one in value.values() if (found := _records(one, levels - 1))]
    largest = max(lists, key=len, default=[])
    # Pages and splits are lists of the same records side by side.
    inside = [one for records in lists if _are_alike(records[0], largest[0]) for one in records]
    parts = [one for one in value.values() if isinstance(one, dict)]
    if len(parts) < 2 or len(parts) < len(value) or len(inside) > len(parts):
        return inside
    keys = set(parts[0])
    if all(set(part) == keys for part in parts) and all(key.isdigit() for key in keys):
        # pandas, orient="columns"
        return [{name: part[key] for name, part in value.items()} for key in parts[0]]
    is_alike = all(keys & set(part) for part in parts)
    return parts if is_alike else inside  # objects by their ids


def _table(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of an object with the names of columns and rows; empty for another one.

    So pandas with orient="split", Datasette, and servers of SQL write a table.
    """
    columns = value.get("columns")
    rows = value.get("data", value.get("rows"))
    if not isinstance(columns, list) or not isinstance(rows, list):
        return []
    named = [one.get("name") if isinstance(one, dict) else one for one in columns]
    names = [name for name in named if isinstance(name, str)]
    if len(names) < len(named) or not _are_rows([names, *rows]):
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


def _without_names(value: Any) -> list[dict[str, Any]]:
    """Return the records of rows without the names of their columns; otherwise none.

    Args:
      value: a list of rows, or an object of such lists side by side.
    """
    if isinstance(value, dict):
        lists = [_without_names(rows) for rows in value.values() if isinstance(rows, list)]
        is_alike = all(lists) and len({len(rows[0]) for rows in lists}) == 1
        return [record for rows in lists for record in rows] if is_alike else []
    is_table = isinstance(value, list) and _are_rows(value)
    if not is_table or not any(isinstance(field, str) for field in value[0]):
        return []
    return [{f"column{number}": field for number, field in enumerate(row, 1)} for row in value]


def _are_rows(values: list[Any]) -> bool:
    """Return whether values are two or more lists of equal length."""
    rows = [one for one in values if isinstance(one, list)]
    return len(rows) == len(values) > 1 and len(set(map(len, rows))) == 1


def _are_names(first: list[Any], others: list[list[Any]]) -> bool:
    """Return whether the first row has the names of the columns.

    They have those of a label and a text, or no other row repeats one, as rows repeat labels.
    """
    if not all(isinstance(name, str) for name in first) or len(set(first)) < len(first):
        return False
    names = {name.lower() for name in first}
    if not names.isdisjoint(KNOWN_LABELS) and not names.isdisjoint(KNOWN_TEXTS):
        return True
    return not any(name == field for row in others for name, field in zip(first, row, strict=True))


def _are_columns(values: list[Any]) -> bool:
    """Return whether values are columns of a table, as `to_dict` of Hugging Face writes them."""
    if len(values) < 2 or not all(isinstance(one, list) for one in values):
        return False
    is_flat = not any(isinstance(each, (list, dict)) for one in values for each in one)
    return is_flat and len(set(map(len, values))) == 1


def _is_page(value: Any) -> bool:
    """Return whether an object has a list of records, and no text as a record of its own has."""
    if not isinstance(value, dict):
        return False
    lists = [
        isinstance(one, list) and all(isinstance(record, dict) for record in one)
        for name, one in value.items()
        if name in LISTS
    ]
    others = [one for name, one in value.items() if name not in LISTS]
    has_text = any(isinstance(one, str) and " " in one.strip() for one in others)
    return lists == [True] and not has_text


def _are_alike(record: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two records have most of their keys in common."""
    return 2 * len(record.keys() & other.keys()) > len(record.keys() | other.keys())


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
