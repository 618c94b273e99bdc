"""What the files are that are converted, in the words of messages."""

from __future__ import annotations

from typing import NamedTuple

from preprocessing.reading import contents, encoding


class Change(NamedTuple):
    """What a file is before it is converted, or what several files are that become one.

    Attributes:
      plural: what several files are, such as `zip archives`.
      singular: what one file is, such as `a zip archive`; empty if it is always several files.
      encoding: the encoding of a text in a message; empty for another change.
      archive: `zip` or `tar`; empty for another change.
    """

    plural: str
    singular: str = ""
    encoding: str = ""
    archive: str = ""

    def __str__(self) -> str:
        return self.singular or self.plural

    def predicate(self, files: int) -> str:
        """Return what some files are, such as `is a zip archive` or `are zip archives`.

        Args:
          files: number of the files.
        """
        if files == 1 and self.singular:
            return f"is {self.singular}"
        return f"are {self.plural}"


DOCUMENT = Change("JSON documents", contents.JSON_DOCUMENT.name)
ZIP = Change("zip archives", contents.ZIP.name, archive="zip")
TAR = Change("tar archives", contents.TAR.name, archive="tar")
TEXTS = Change("folders with a text in each file")
LINES = Change("files with a text on each line")
LABELLED = Change("files with a text on each line and files with the labels of these lines")


def decoding(name: str) -> Change:
    """Return the change of a text in another encoding than UTF-8.

    Args:
      name: the result of `encoding.guess` or `encoding.wide`.
    """
    shown = encoding.shown(name)
    return Change(shown, shown, encoding=shown)
