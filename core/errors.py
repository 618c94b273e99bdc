"""The errors that a user can correct. Each has a message of one line and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from core import exit_codes

_ERROR = re.compile(r"[\w.]*\b(\w*(?:Error|Exception): .*)")
ERROR_LINE = re.compile(r"\b\w*(Error|Exception)\b|Check failed|[Ff]atal")
"""A line of a log that names an error."""
_STACK = re.compile(r'Traceback |in user code:|Graph execution error:|Detected at |File "')
_FIRST_ROOT = re.compile(r"\(0\) +(.+)")
"""The first of several errors in a message of TensorFlow, with the name of its code."""

_OPERATION = re.compile(
    r"\s*\[while running .*?\]|\{\{function_node .*?\}\}\s*|\s*\[Op:\w+\](?: name:\s*)?"
)
"""The places in a message of Beam or TensorFlow with the operation that failed."""

CONTROLS_BEYOND_ASCII = r"\x7f-\x9f\u202a-\u202e\u2066-\u2069"
"""The characters above `~` with which a text could move the cursor of a terminal, or show the rest
of a line in another order, as ranges of a regular expression. They are no letters."""
_CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f{CONTROLS_BEYOND_ASCII}]")
"""The characters with which a text could change how a terminal shows another one."""


def visible(text: str) -> str:
    """Return a text in which control characters are escaped, such as ESC as `\\x1b`.

    So are the characters that reverse the direction of a text, such as U+202E as `\\u202e`. A tab
    and a line break are kept.

    Args:
      text: a text with parts that come from a user, a file or a server.
    """
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


class UserError(Exception):
    """An error whose message is enough for a user to correct it.

    The command line prints the message instead of a traceback and ends with `exit_code`.

    Args:
      message: the message. Each line break becomes a space, and control characters are escaped.

    Attributes:
      exit_code: one of `core.exit_codes`.
    """

    exit_code = exit_codes.FAILED

    def __init__(self, message: str) -> None:
        # Parts of the message may come from a user or a server, with line breaks in them.
        super().__init__(visible(" ".join(message.split())))


def cause(error: BaseException) -> str:
    """Return the type and the message of an error in one line; for a UserError, only the message.

    The messages of TensorFlow, Beam and Keras contain whole tracebacks. Of such a message, the
    line contains only the last error. If TensorFlow lists several root errors, the line is the
    first of them, which begins with the name of its code in place of the type.

    Args:
      error: the error.
    """
    message = _OPERATION.sub("", str(error))
    if isinstance(error, UserError):
        return message
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if errors := list(filter(None, map(_ERROR.match, lines))):
        return errors[-1][1]
    if roots := list(filter(None, map(_FIRST_ROOT.match, lines))):
        return " ".join(roots[0][1].split())
    messages = [line for line in lines if not _STACK.match(line)]
    if not messages:
        return type(error).__name__
    # A line such as "Pipeline has validations errors:" contains no error itself.
    shown = messages[:2] if messages[0].endswith(":") else messages[:1]
    return f"{type(error).__name__}: {' '.join(shown)}"


def error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and then those that caused it, as a traceback of Python shows them.

    Args:
      error: the error.
    """
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def storage_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of local and remote files, for an `except` clause.

    The types of TensorFlow are included only if TensorFlow has been imported. Otherwise its errors
    cannot occur, and the import takes seconds.
    """
    tensorflow = sys.modules.get("tensorflow")
    return (OSError, tensorflow.errors.OpError) if tensorflow else (OSError,)


def disk_is_full(error: BaseException) -> bool:
    """Return whether an error of Python, of TensorFlow or of SQLite is that of a full disk.

    Args:
      error: the error.
    """
    return bool(re.search("No space left on device|Disk quota exceeded|disk is full", str(error)))


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return a clause with the first invalid byte of a line that is not UTF-8, and the remedy.

    Args:
      error: the error of decoding the whole line.
    """
    byte = error.object[error.start]
    return f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8, convert it"


def write_again(what: str) -> str:
    """Return the remedy for an output of an earlier run that is missing or damaged, as a clause.

    Args:
      what: the name of the output, or its pronoun.
    """
    return f"run once with --set cache=false to write {what} again"


class ConfigError(UserError, ValueError):
    """A wrong setting. The message names its key and the allowed values."""

    exit_code = exit_codes.BAD_INPUT


class InputError(UserError, ValueError):
    """Input that does not fit the settings. The message names the file or folder and the remedy."""

    exit_code = exit_codes.BAD_INPUT


class ServerError(UserError):
    """A request that a server refused, or a server that cannot be reached."""
