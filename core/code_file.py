"""A Python file of a user's project, as a text that travels with a run.

The text is a part of the job of a training and of a compiled pipeline. So the code of a project
runs in every child process and on every cluster, and an image does not contain it.
"""

from __future__ import annotations

import ast
import io
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from core.errors import InputError, UserError, cause
from core.files import read_text
from core.settings import Section

MAX_BYTES = 32_768
"""Maximum size of a file. A compiled pipeline passes the text in a command-line argument, which
Linux limits to 131,072 bytes, with each line break and quotation mark escaped twice."""

Result = TypeVar("Result")

_loaded: dict[str, CodeFile] = {}
"""Name of a module -> its file, for the modules that this process has executed."""


class CodeFile(Section):
    """A Python file with its text.

    Attributes:
      kind: `model` or `component`.
      name: the name of the file without its suffix.
      path: the file in messages and tracebacks, relative to the project.
      text: the content.
    """

    kind: str
    name: str
    path: str
    text: str

    @property
    def module(self) -> str:
        """The name under which Python has the module of the file."""
        return f"project_{self.kind}_{self.name}"


class CodeError(InputError):
    """An error in the code of a project. The message names the file and the line."""


def read(file: Path, kind: str, project: Path) -> CodeFile:
    """Read a file of a project.

    Args:
      file: the file.
      kind: `model` or `component`.
      project: the folder of the project.

    Raises:
      ConfigError: the file cannot be read, is not UTF-8, or is too large.
    """
    reason = "because the file is a part of each compiled pipeline"
    remedy = f"{reason}. Shorten it, or install a part as a package"
    text = read_text(file, str(file), MAX_BYTES, remedy)
    return CodeFile(kind=kind, name=file.stem, path=str(file.relative_to(project)), text=text)


def load(file: CodeFile, required: Iterable[str]) -> ModuleType:
    """Return the module of a file. It is executed once in a process, unless its text changes.

    Args:
      file: the file.
      required: the names that the module must define.

    Raises:
      CodeError: the file has a syntax error, its execution fails, or it lacks a required name.
      UserError: the code of the file raised it.
    """
    if _loaded.get(file.module) != file:
        _execute(file)
    module = sys.modules[file.module]
    for name in required:
        if not hasattr(module, name):
            raise CodeError(
                about(file, name, f"is missing; each {file.kind} of a project defines it")
            )
    return module


def _execute(file: CodeFile) -> None:
    module = ModuleType(file.module)
    # Tracebacks and AutoGraph read the source from this cache. Without a time in the entry they
    # never read it from the disk, where the file may be missing, or have changed since. The module
    # has no `__file__`, because AutoGraph would replace the entry by what it finds there.
    # `str.splitlines` would also end a line at a form feed, where Python does not.
    lines = io.StringIO(file.text, newline=None).readlines()
    linecache.cache[file.path] = (len(file.text), None, lines, file.path)
    # pydantic and TFX look up classes in the module while it is executed.
    sys.modules[file.module] = module

    def execute() -> None:
        # `@component` of TFX does not allow the postponed annotations that this module has.
        exec(compile(file.text, file.path, "exec", dont_inherit=True), module.__dict__)

    try:
        guarded(file, execute)
    except BaseException:
        del sys.modules[file.module]
        _loaded.pop(file.module, None)
        raise
    _loaded[file.module] = file


def guarded(file: CodeFile, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Call a function of a file; return its result.

    Args:
      file: the file.
      function: the function.
      args: its positional arguments.
      kwargs: its keyword arguments.

    Raises:
      CodeError: the function raised an exception, which is the cause of this one, or called
        `sys.exit`.
      UserError: the function raised it.
    """
    try:
        return function(*args, **kwargs)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # a file that is also a script may end the process
        if isinstance(error, SyntaxError) and error.filename == file.path:
            raise CodeError(f"{file.path}, line {error.lineno}: {error.msg}") from None
        line = failed_line(file, error) or 1
        raise CodeError(f"{file.path}, line {line}: {cause(error)}") from error


def about(file: CodeFile, name: str, message: str) -> str:
    """Return a message about a name that a file defines, with the file and the line.

    Args:
      file: the file, without a syntax error.
      name: the name of a function, a class or a variable at the top level of the file, see
        `line_of`.
      message: the predicate of the sentence whose subject is `name`.
    """
    return f"{file.path}, line {line_of(file, name)}: {name} {message}"


def line_of(file: CodeFile, name: str) -> int:
    """Return the line at which a file defines a name; 1 if the file does not define it.

    Args:
      file: the file, without a syntax error.
      name: the name of a function, a class or a variable at the top level of the file.
    """
    line = 1
    for node in ast.parse(file.text).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        if name in [getattr(each, "name", getattr(each, "id", None)) for each in targets]:
            line = node.lineno
    return line


def located_cause(error: BaseException) -> str:
    """Return `cause(error)`, after the file and the line if code of a project raised the error.

    Args:
      error: the error, with its traceback.
    """
    message = cause(error)
    for file in _loaded.values():
        line = failed_line(file, error)
        if line and not message.startswith(file.path):
            return f"{file.path}, line {line}: {message}"
    return message


def failed_line(file: CodeFile, error: BaseException) -> int | None:
    """Return the line of a file at which an error was raised; None if it was raised elsewhere.

    Args:
      file: the file.
      error: the error, with its traceback.
    """
    # AutoGraph puts the lines of a layer's `call` into the message.
    quoted = re.findall(rf'File "{re.escape(file.path)}", line (\d+)', str(error))
    frames = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file.path
    ]
    if quoted:
        return int(quoted[-1])
    return frames[-1] if frames else None
