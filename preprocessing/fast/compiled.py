"""The decorator of the functions that Numba compiles to machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

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
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        # Numba can write into no folder. The function is compiled once in each process.
        dispatcher = numba.njit(nogil=True)(function)
    return dispatcher
