"""The decorator of the functions that Numba compiles to machine code.

This module uses parts of `numba.core.caching` that Numba does not document: its cache of machine
code raises the errors of its files, and a process that is killed can leave an index that names the
machine code of an older source.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Return a function that is compiled when it is first called.

    It releases Python's global interpreter lock, so threads execute it at the same time. Numba
    stores the machine code in `__pycache__`, or in a folder of the user if it cannot write there,
    and compiles again after a change of the file of `function`. So this file must contain all
    functions that `function` calls, and constants of other files have to be arguments. The compiled
    code does not check the bounds of arrays.

    Args:
      function: a function of numbers and NumPy arrays.
    """
    dispatcher: Any = numba.njit(nogil=True)(function)
    # Without a folder that can be written, the function is compiled once in each process.
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = _Cache(function)
    return dispatcher


def part(function: Function) -> Function:
    """Return a function for `compiled` functions of the same file, with which it is compiled."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    return dispatcher


class _Files(CompileResultCacheImpl):
    """The files for the machine code of a function; their names contain a digest of its source."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        source = hashlib.sha256(repr(self.locator.get_source_stamp()).encode()).hexdigest()
        return f"{super().get_filename_base(fullname, abiflags)}-{source[:8]}"


class _Cache(FunctionCache):
    """A cache whose damaged files are written again, and which may be on a full disk."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file can raise any exception
            logging.warning("The compiled code in %s is damaged: %r", self.cache_path, error)
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # see `load_overload`
            logging.warning("Compiled code cannot be stored in %s: %r", self.cache_path, error)
