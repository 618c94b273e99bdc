"""A process that replaces the probe and fails in the way that $STUB names."""

import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
print("stage the first answer of predict_text", flush=True)
kind = os.environ["STUB"]
if kind == "abort":
    print("F tensorflow/core: Check failed: size >= 0\n*** Begin stack\n@ 0x1", file=sys.stderr)
    sys.stderr.flush()
    os.abort()
elif kind == "raise":
    raise ValueError("no weights\nfor it")
elif kind == "hang":
    time.sleep(600)
elif kind == "garbage":
    (folder / "answer.json").write_text("certainly!")
elif kind == "other keys":
    (folder / "answer.json").write_text('{"speed": 1}')
