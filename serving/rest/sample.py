"""A random sample of the texts of requests in files, for `amazon-reviews watch`.

A file has the sample of one day (UTC) of one server. Its name contains the day and the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from core.errors import ConfigError
from preprocessing.features import LABEL, TEXT
from serving.rest.settings import Server

_PREFIX = "requests-"
_NAME = re.compile(rf"{_PREFIX}(\d{{4}}-\d{{2}}-\d{{2}})-\d+-\d+\.jsonl")
_SECONDS_BETWEEN_WRITES = 60.0
_BYTES = 10_000
"""Maximum size of a kept text. A longer one is cut off, which limits the memory."""
_log = logging.getLogger(__name__)


class RequestSample:
    """A uniform random sample of the texts of each day, by Vitter's algorithm R.

    Only the event loop may call the methods.

    Args:
      settings: `sample_folder`, which is set, `sample_texts` and `sample_days`.
      columns: `data.columns`, by which `watch` reads the files.
    """

    def __init__(self, settings: Server, columns: Mapping[str, str | None]):
        assert settings.sample_folder is not None
        self._folder = settings.sample_folder
        self._most = settings.sample_texts
        self._days = settings.sample_days
        self._column = columns.get(TEXT) or TEXT
        # `watch` requires each column that the settings name, except that of the labels. The text
        # of a request includes the title.
        named = [name for part, name in columns.items() if name and part != LABEL]
        self._without_text: dict[str, str | None] = dict.fromkeys(named)
        self._random = random.Random()
        self._day = _today()
        self._process = f"{os.getpid()}-{int(datetime.datetime.now().timestamp())}"
        self._texts: list[str] = []
        self._seen = 0
        self._is_written = True

    def prepare(self) -> None:
        """Create the folder, and remove the files that are too old.

        Raises:
          ConfigError: the folder cannot be created or written.
        """
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                pass
            self._remove_old()
        except OSError as error:
            raise ConfigError(
                f"server.sample_folder: {self._folder} cannot be written: {error.strerror}"
            ) from None

    def add(self, texts: Sequence[bytes]) -> None:
        """Add the texts of a request. Texts that are not UTF-8 are left out."""
        if self._day != _today():
            self.write()
            self._day, self._texts, self._seen = _today(), [], 0
        for text in texts:
            self._seen += 1
            # The first texts fill the sample. Each later one replaces one of them with the
            # probability of its size divided by the number of texts so far.
            place = len(self._texts) if self._seen <= self._most else self._draw()
            if place >= self._most:
                continue
            with contextlib.suppress(UnicodeDecodeError):
                kept = _beginning(text)
                self._texts[place : place + 1] = [kept]
                self._is_written = False

    def write(self) -> None:
        """Write the file of the day, and remove the files that are too old.

        An error is logged, because it must not stop the server.
        """
        if self._is_written:
            return
        try:
            self._write_file()
            self._is_written = True
            self._remove_old()
        except OSError as error:
            _log.warning("server.sample_folder: %s cannot be written: %s", self._folder, error)

    def _write_file(self) -> None:
        """Write the file of the day, in place of an earlier one.

        Raises:
          OSError: the file cannot be written.
        """
        name = f"{_PREFIX}{self._day.isoformat()}-{self._process}.jsonl"
        # The file is readable by its owner alone.
        descriptor, path = tempfile.mkstemp(dir=self._folder)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                for text in self._texts:
                    record = {**self._without_text, self._column: text}
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
            os.replace(path, os.path.join(self._folder, name))
        except OSError:
            os.remove(path)
            raise

    async def write_regularly(self) -> None:
        """Write the file once a minute, until the task is cancelled."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_WRITES)
            self.write()

    def _draw(self) -> int:
        return self._random.randrange(self._seen)

    def _remove_old(self) -> None:
        oldest = _today() - datetime.timedelta(days=self._days - 1)
        for name, day in self._files():
            if day < oldest:
                os.remove(os.path.join(self._folder, name))

    def _files(self) -> Iterator[tuple[str, datetime.date]]:
        """Yield the name and the day of each file that a server has written."""
        for name in os.listdir(self._folder):
            found = _NAME.fullmatch(name)
            with contextlib.suppress(ValueError):
                if found:
                    yield name, datetime.date.fromisoformat(found[1])


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.timezone.utc).date()


def _beginning(text: bytes) -> str:
    """Return a text, of a long one the first _BYTES.

    Raises:
      UnicodeDecodeError: the text is not UTF-8.
    """
    whole = text.decode()
    return whole if len(text) <= _BYTES else text[:_BYTES].decode("utf-8", "ignore")
