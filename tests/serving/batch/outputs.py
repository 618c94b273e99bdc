"""Files of reviews for the tests of batch scoring, and what their outputs contain."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from tests.preprocessing.reading.review_files import csv_text, parquet_bytes

TEXTS = [f"{'good' if n % 3 else 'bad'} phone {n}" for n in range(3000)]
FILES = {
    "fasttext": "\n".join(f"__label__{n % 2 + 1} {text}" for n, text in enumerate(TEXTS)),
    "plain": "\n".join(TEXTS),
    "csv": csv_text([("rating", "text"), *[(n % 6 or "", t) for n, t in enumerate(TEXTS)]]),
    "jsonl": "\n".join(json.dumps({"text": text}) for text in TEXTS),
    "parquet": parquet_bytes({"text": TEXTS, "rating": [None] * len(TEXTS)}, 500),
}
SUFFIXES = {"fasttext": ".ft.txt", "plain": ".txt"}


def rows(path, column=None):
    """Return (file, position, probability, label) of each review, or the values of a column."""
    if path.suffix == ".parquet":
        found = pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open(newline="") as file:
            found = list(csv.DictReader(file))
    if column:
        return [row[column] for row in found]
    return [(r["file"], int(r["position"]), float(r["probability"]), r["label"]) for r in found]


def rejected(path):
    """Return (file, position) -> reason of each line in a rejected file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["file"], line["position"]): line["reason"] for line in lines}


def wanted(path, texts=TEXTS, first=1):
    """Return the rows for texts of a file; `first` is the position of the first text."""
    return [
        (
            str(path),
            n,
            pytest.approx(0.9 if "good" in t else 0.1),
            "positive" if "good" in t else "negative",
        )
        for n, t in enumerate(texts, first)
    ]
