"""Convert a JSON document with a list of objects into JSON lines, as the answers of servers are."""

from __future__ import annotations

import json
import shlex
from typing import Any

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive, DecompressedStream
from preprocessing.reading.contents import refuse_other_content
from preprocessing.reading.files import open_bytes

_HEAD, _MOST = 512, 64 << 20
"""Bytes that decide whether a file is a document, and the maximum size of a document."""


def find_list(path: str) -> str | None:
    """Return the key of the longest list of objects in a JSON document; None if there is none.

    Args:
      path: path or URL of the file.

    Returns:
      The key, or an empty text if the document itself is a list.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_bytes(path) as stream:
        is_packed = isinstance(stream, DecompressedStream)
        try:
            head = stream.read(_HEAD)
            if is_packed or not head.lstrip().startswith((b"[", b"{")):
                return None
            if _is_lines(path, head):
                head += stream.readline(_MOST)
                if stream.read(_HEAD).strip():
                    return None  # a second line
            document = json.loads(head + stream.read(_MOST))
        except (CorruptArchive, ValueError, RecursionError):
            return None
    lists = {"": document} if isinstance(document, list) else document
    found = {key: len(value) for key, value in lists.items() if _is_records(value)}
    return max(found, key=found.__getitem__) if found else None


def convert(path: str, key: str, target: str) -> None:
    """Write the objects of a document as JSON lines; the names of nested values contain dots.

    A half of a surrogate pair, as in a text that was cut, becomes a question mark.

    Args:
      path: path or URL of the document.
      key: the result of `find_list`.
      target: path of the new file.

    Raises:
      InputError: the document cannot be opened.
      OSError: a file cannot be read or written.
    """
    import pandas  # its import takes a second

    with open_bytes(path) as stream:
        document = json.loads(stream.read())
    text = json.dumps(document[key] if key else document, ensure_ascii=False)
    table = pandas.json_normalize(json.loads(text.encode("utf-8", "replace")))
    table.to_json(target, orient="records", lines=True, force_ascii=False)


def command(path: str, key: str, target: str) -> str:
    """Return the command that does the same as `convert`.

    Args:
      path: path of the document.
      key: the result of `find_list`.
      target: path of the new file.
    """
    at = f"[{key!r}]" if key else ""
    code = (
        f"import json, pandas; text = json.dumps(json.load(open({path!r})){at}, ensure_ascii=False)"
        "; pandas.json_normalize(json.loads(text.encode('utf-8', 'replace')))"
        f".to_json({target!r}, orient='records', lines=True, force_ascii=False)"
    )
    is_plain = not set(code) & set('"$`\\!')
    return f'python -c "{code}"' if is_plain else f"python -c {shlex.quote(code)}"


def _is_lines(path: str, head: bytes) -> bool:
    try:
        refuse_other_content(path, head, packed=False)
    except InputError:
        return False
    return True


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
