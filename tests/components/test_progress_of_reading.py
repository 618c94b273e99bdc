"""The progress of ReviewExampleGen: bytes of the files of bytes of all files."""

import bz2
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.review_example_gen.units import Source, count_bytes, in_units, read_in_turns
from preprocessing.reading import pieces
from preprocessing.reading.files import SourceFile
from preprocessing.reading.layouts import decide_layouts
from preprocessing.reading.pieces import cut_file
from preprocessing.reading.records import ReadOptions

RECORDS = [
    {"rating": n % 5 + 1, "text": f"text {n} {n * 2_654_435_761 % 2**32:x} " * 9}
    for n in range(30_000)
]
LINES = "".join(json.dumps(one) + "\n" for one in RECORDS).encode()
CSV = "".join(["rating,text\n", *(f"{one['rating']},{one['text']}\n" for one in RECORDS)]).encode()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.bz2", "a.csv", "a.parquet"])
def test_the_bytes_of_a_file_are_counted_while_it_is_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2 << 20)
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(RECORDS), path, row_group_size=3_000)
    else:
        pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(name.rpartition(".")[2], bytes)
        path.write_bytes(pack(CSV if name == "a.csv" else LINES))
    size = path.stat().st_size
    [layout] = decide_layouts([SourceFile(str(path), size)], ReadOptions())
    found = [Source("all", piece) for piece in cut_file(str(path), layout)]
    read = []

    class Counter:
        def advance(self, count):
            assert count >= 0
            read.append(count)

    with ThreadPoolExecutor(2) as pool:
        for unit in in_units(found):
            for _ in count_bytes(unit, read_in_turns(unit, pool), Counter()):
                pass
    assert sum(read) == size
    assert max(read) < size / 2
