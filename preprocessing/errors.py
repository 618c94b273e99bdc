"""The two ways an input file can be at fault: the wrong file, or a damaged one."""

from __future__ import annotations


class InputError(ValueError):
    """The input cannot be read as the settings say.

    The message is one line that names the file, folder or setting, says what is wrong with
    it and what would be right.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class CorruptArchive(Exception):
    """A compressed file is damaged or stops early; raised by reading it.

    Attributes:
        path: the compressed file.
        position: how many bytes of the compressed file were read before the damage showed.
        why: what is wrong there.
    """

    def __init__(self, path: str, position: int, why: str) -> None:
        # All three go to the base class: that is what lets a Beam worker pickle the error.
        super().__init__(path, position, why)
        self.path = path
        self.position = position
        self.why = why

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"

    @property
    def detail(self) -> str:
        """What is wrong and where, without the file's name."""
        return f"{self.why} at byte {self.position:,} of the compressed file"
