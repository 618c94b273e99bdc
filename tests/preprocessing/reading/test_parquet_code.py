"""A Parquet file with code in it: the vulnerability CVE-2023-47248 of pyarrow before 14.0.1."""

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


class _Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, file):
        self._file = file

    def __reduce__(self):
        return Path.touch, (self._file,)


def test_code_in_a_parquet_file_is_not_executed(folder):
    """In a process that has imported nothing but the reader."""
    touched, file = folder / "touched", folder / "code.parquet"
    kind = {"ARROW:extension:name": "arrow.py_extension_type"}
    code = pickle.dumps(_Touch(touched))
    pickle.loads(code)
    touched.unlink()
    field = pa.field("text", pa.string(), metadata={**kind, "ARROW:extension:metadata": code})
    table = pa.table([[1, 0], ["a", "b"]], schema=pa.schema([("label", pa.int64()), field]))
    pq.write_table(table, file)
    script = (
        "import sys\n"
        "from preprocessing.reading.formats.parquet import open_parquet\n"
        "print(*open_parquet(sys.argv[1], open(sys.argv[1], 'rb')).schema_arrow.names)\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", script, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    # A new pyarrow reads the column as text; an old one refuses it.
    assert done.stdout == "label text\n" or "InputError: " in done.stderr
    assert not touched.exists()
