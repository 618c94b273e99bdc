"""A limit that takes the place of a full disk."""

import contextlib
import resource


@contextlib.contextmanager
def full_disk(most):
    """Let every write behind the first `most` bytes of a file fail with "File too large"."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
