"""A context for the import of large libraries."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def large_imports() -> Iterator[None]:
    """Disable the garbage collector while large libraries are imported.

    TensorFlow and TFX create millions of objects that live until the end of the process. The
    collector visits them again and again, which takes a tenth of the time of the import or more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
