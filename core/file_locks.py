"""What is common to all locks of files."""

from __future__ import annotations

import errno

WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})
"""Error numbers of `flock` on file systems that do not support locks."""
