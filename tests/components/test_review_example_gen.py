"""ReviewExampleGen on real files: Examples, splits, limits, duplicates, accounting."""

import bz2
import gzip
import json
import re
from collections import Counter, defaultdict

import pytest

from components.line_counts import SPLITS
from components.review_example_gen import component, splits, units
from components.review_example_gen.read_whole import WholeReader
from core.errors import InputError
from preprocessing.reading import pieces
from preprocessing.reading.files import find_sources, fingerprint
from preprocessing.reading.pieces import MAX_LINE_BYTES
from tests.components.example_gen import THREADS, label_of, line, read_files, text_of, write

pytestmark = pytest.mark.slow


@pytest.fixture
def inputs(tmp_path):
    return tmp_path / "input"


def test_an_example_has_the_features_of_the_contract_and_equal_texts_are_in_one_split(
    tmp_path, inputs
):
    write(inputs, "a.txt", [line(i % 100, 1 + i % 2) for i in range(400)])
    read = read_files(tmp_path, inputs)
    assert read.reading == "fastText: label (1 and 2)"
    seen = defaultdict(set)
    for split, examples in read.splits.items():
        for example in examples:
            assert set(example.features.feature) == {"text", "label"}
            number = int(text_of(example).split()[-1])
            assert text_of(example) == b"Title %d: body %d" % (number, number)
            assert label_of(example) == number % 2
            seen[number].add(split)
    assert len(seen) == 100 and sum(map(len, read.splits.values())) == 400
    assert all(len(of_text) == 1 for of_text in seen.values())
    # Nothing unpublished is left behind.
    left = sorted(path.name for path in (tmp_path / "examples").iterdir())
    assert left == ["Split-eval", "Split-test", "Split-train", "example_counts.json", "labels.json"]


LIMITS = {"train": 300, "test": 50}
CONTENTS = {
    "test": range(0, 100),
    "eval": range(60, 200),
    "train-0": [*range(40, 90), *range(150, 700)],
    "train-1": [*range(190, 210), *range(600, 1000), *range(90, 110)],
}


def test_duplicates_and_limits_are_the_same_however_files_are_cut(tmp_path, inputs, monkeypatch):
    for name, numbers in CONTENTS.items():
        write(inputs, f"{name}.txt", [*map(line, numbers), "no label"])
    # Duplicates are readable, so they do not count as unusable lines.
    options = {"max_examples": LIMITS, "max_rejected_fraction": 0.01}
    patterns = {"train": "train-*", "eval": "eval*", "test": "test*"}
    whole = read_files(tmp_path / "whole", inputs, patterns, **options)
    # A unit has several pieces, and its keys are in several elements.
    monkeypatch.setattr(pieces, "_PLAIN_BYTES", 2_000)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 10_000)
    monkeypatch.setattr(splits, "_KEYS_AT_ONCE", 20)
    cut = read_files(tmp_path / "cut", inputs, patterns, THREADS, **options)
    assert whole.counts["rejected/duplicate_across_splits"] == 40 + 50 + 50 + 10 + 20
    assert sum(whole.counts.values()) == sum(map(len, CONTENTS.values())) + len(CONTENTS)
    assert whole.by_file["test.txt"].keys() == {
        *("examples/test", "over_max_examples", "rejected/bad_label")
    }
    assert not whole.texts("train") & (whole.texts("eval") + whole.texts("test"))
    for name, limit in LIMITS.items():
        assert limit - 2 <= len(whole.splits[name]) <= limit
    assert (cut.counts, cut.by_file) == (whole.counts, whole.by_file)
    assert ("train-0.txt", 601, "bad_label") in whole.places()
    assert cut.places() == whole.places()
    for split in SPLITS:
        assert cut.content(split) == whole.content(split)


def test_every_line_is_an_example_a_neutral_or_rejected(tmp_path, inputs):
    stars = ["1", "2", "3", "4", "5", "x", ""]
    rows = [f'{{"overall": "{s}", "reviewText": "text {i} {s}"}}' for i in range(20) for s in stars]
    write(inputs, "a.jsonl", [*rows, "{", '{"overall": 5}'])
    read = read_files(tmp_path, inputs)
    assert sum(read.counts.values()) == 142
    assert read.counts["neutral"] == 20
    reasons = Counter(item["reason"] for item in read.rejected)
    assert reasons == {"bad_label": 40, "broken_json": 1, "no_text": 1}
    assert {f"rejected/{reason}": n for reason, n in reasons.items()}.items() <= read.counts.items()
    assert {"file", "position", "reason", "detail"} == set(read.rejected[0])


def test_a_file_that_changes_between_its_key_and_the_end_of_the_reading_is_an_error(
    tmp_path, inputs, monkeypatch
):
    write(inputs, "a.txt", map(line, range(100)))
    key = fingerprint(str(inputs), find_sources(str(inputs), {"all": "*"}))
    write(inputs, "a.txt", map(line, range(1, 101)))
    with pytest.raises(InputError, match="changed after the start of the run; run again"):
        read_files(tmp_path / "before", inputs, input_fingerprint=key)
    write(inputs, "a.txt", map(line, range(100)))
    assert read_files(tmp_path / "same", inputs, input_fingerprint=key).counts
    read = WholeReader.read

    def read_and_add(*args):
        found = read(*args)
        write(inputs, "new.txt", [line(1)])
        return found

    def read_and_change(*args):
        found = read(*args)
        write(inputs, "a.txt", map(line, range(1, 101)))
        return found

    # A file that is new did not take part.
    monkeypatch.setattr(WholeReader, "read", read_and_add)
    read_files(tmp_path / "new", inputs)
    monkeypatch.setattr(WholeReader, "read", read_and_change)
    with pytest.raises(InputError, match="changed after the start of the run; run again"):
        read_files(tmp_path / "during", inputs)


def test_each_record_is_read_by_its_own_columns_and_one_without_known_columns_counts(
    tmp_path, inputs
):
    schemas = [("rating", "text"), ("overall", "reviewText"), ("stars", "comment")]
    rows = [
        {star: 1 + 4 * (n % 2), text: f"{text} {n} long"}
        for star, text in schemas
        for n in range(30)
    ]
    write(inputs, "a.jsonl", map(json.dumps, rows))
    read = read_files(tmp_path / "all", inputs)
    assert read.counts["rejected/unknown_columns"] == 30
    labels = {text_of(e): label_of(e) for split in SPLITS for e in read.splits[split]}
    assert labels == {
        f"{text} {n} long".encode(): n % 2 for _, text in schemas[:2] for n in range(30)
    }
    with pytest.raises(InputError) as error:
        read_files(tmp_path / "few", inputs, max_rejected_fraction=0.3)
    assert "30 of 90 lines (33.3%) cannot be used" in str(error.value)
    assert "a.jsonl:61 unknown_columns (no text in `reviewText`, but a value in `comment`)" in str(
        error.value
    )
    assert str(error.value).endswith(
        "rename columns that contain texts to those of the other records"
    )


def test_too_many_rejected_lines_are_an_input_error_that_shows_the_first(tmp_path, inputs):
    write(inputs, "a.txt", [line(1), "no label", line(2), "none here either"])
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs, max_rejected_fraction=0.4)
    assert "2 of 4 lines (50.0%) cannot be used" in str(error.value)
    assert "a.txt:2 bad_label (no label); a.txt:4 bad_label" in str(error.value)


def test_lists_in_place_of_texts_have_a_remedy(tmp_path, inputs):
    rows = [{"label": n % 2, "text": f"review {n}" if n % 4 else ["a", "b"]} for n in range(20)]
    write(inputs, "a.jsonl", map(json.dumps, rows))
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs, max_rejected_fraction=0.1)
    assert "wrong_type (`text` is a list" in str(error.value)
    assert str(error.value).endswith(
        "write a label as a text or a number, and a text as one string"
    )


def test_one_label_that_contradicts_the_scale_is_an_input_error(tmp_path, inputs):
    inputs.mkdir()
    # Only the head of a gzip file is inspected.
    rows = [f"{1 + i % 2},review {i} {'of some words ' * 9}" for i in range(9_000)]
    text = "\n".join(["label,text", *rows, "4,late", "x,no label", ""])
    (inputs / "a.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    with pytest.raises(InputError) as error:
        read_files(tmp_path / "guessed", inputs)
    assert "1 of the labels contradict the scale" in str(error.value)
    assert "a.csv.gz:9002 label_of_another_scale (label: 4)" in str(error.value)
    read = read_files(tmp_path / "set", inputs, read={"label_map": {"1": 0, "2": 1}})
    assert read.counts["rejected/bad_label"] == 2


def test_nothing_to_train_on_is_an_input_error(tmp_path, inputs):
    write(inputs, "train.jsonl", ['{"overall": 3, "reviewText": "so so"}'])
    write(inputs, "train.txt", [line(1)] * 50)
    limits = {"train": 9, "eval": 9, "test": 9}
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs, {"train": "*"}, max_examples=limits)
    assert str(error.value) == (
        "no line is left for training: of 51 lines with text 0 were rejected, 1 left out by label, "
        "0 duplicates of texts in other files, 50 over data.max_examples"
    )


def test_texts_that_are_all_equal_and_in_a_held_out_split_are_named(tmp_path, inputs):
    rows = [f"{1 + 4 * (number % 2)},the very same text 4" for number in range(9)]
    write(inputs, "a.csv", ["stars,text", *rows])
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs)
    assert str(error.value).endswith(
        "0 over data.max_examples, 9 in eval or test (equal texts belong to one split)"
    )


def test_lines_without_text_alone_are_an_input_error_that_counts_them(tmp_path, inputs):
    write(inputs, "a.csv", ["label,text", *["positive,", "negative,  "] * 30])
    with pytest.raises(InputError) as error:
        read_files(tmp_path, inputs)
    assert str(error.value).startswith(
        "no line is left for training: 60 lines have no text (data.columns.text), of 0 lines with "
    )


def test_only_a_damaged_block_is_lost_and_its_position_is_reported(tmp_path, inputs):
    inputs.mkdir()
    # Twenty blocks, of which one is damaged.
    lines = b"".join(b"__label__%d review %d: %r\n" % (n % 2 + 1, n, n**9) for n in range(45_000))
    archive = bytearray(bz2.compress(lines, 1))
    size, middle = len(archive), len(archive) // 2
    archive[middle : middle + 40] = bytes(byte ^ 0xFF for byte in archive[middle : middle + 40])
    (inputs / "a.bz2").write_bytes(archive)
    with pytest.raises(InputError) as error:
        read_files(tmp_path / "strict", inputs, max_rejected_fraction=0.01)
    assert f"of {size:,} bytes" in str(error.value)
    assert re.search(r"a\.bz2:\d+ corrupt_archive \(damaged at byte [\d,]+", str(error.value))
    read = read_files(tmp_path, inputs, max_rejected_fraction=0.2)
    assert 45_000 * 0.85 < sum(read.counts[f"examples/{split}"] for split in SPLITS) < 45_000
    (record,) = read.rejected
    at = int(re.search(r"at byte ([\d,]+) of the", record["detail"])[1].replace(",", ""))
    assert size * 0.45 < at < size * 0.6
    assert 0 < read.counts["lost_bytes"] < size * 0.15
    assert read.counts["rejected/corrupt_archive"] == 1


def test_lines_in_another_encoding_are_an_input_error_with_the_remedy(tmp_path, inputs):
    inputs.mkdir()
    (inputs / "a.txt").write_bytes("\n".join(line(n) + " café" for n in range(9)).encode("cp1252"))
    with pytest.raises(InputError, match=r"9 of 9 lines .*a\.txt is .*Windows-1252.*data convert"):
        read_files(tmp_path, inputs)


def test_most_of_a_file_in_one_line_is_an_input_error(tmp_path, inputs):
    inputs.mkdir()
    reviews = "".join(f"{line(n)}\n" for n in range(400)).encode()
    (inputs / "a.txt").write_bytes(reviews + bytes(3_000_000))
    with pytest.raises(InputError, match=r"3,000,000 of 3,\d+,\d+ bytes \(99.*a\.txt:401 line_too"):
        read_files(tmp_path, inputs, max_rejected_fraction=0.01)


@pytest.mark.parametrize(
    "name, end",
    [("a.csv", "\r"), ("b.csv", "\r"), ("c.jsonl", "\r"), ("c.jsonl", ""), ("d.txt", "\r")],
)
def test_a_part_of_a_joined_file_without_line_breaks_is_an_input_error(tmp_path, inputs, name, end):
    records = {
        "a.csv": lambda n: f'{1 + 3 * (n % 2)},"fine, number {n}"',
        "b.csv": lambda n: f"{1 + 3 * (n % 2)},fine number {n}",
        "c.jsonl": lambda n: f'{{"rating": {1 + 3 * (n % 2)}, "text": "fine number {n}"}}',
        "d.txt": line,
    }
    lines = ["rating,text"] * name.endswith(".csv") + [records[name](n) for n in range(400)]
    write(inputs, name, [*lines, end.join(records[name](n) for n in range(400, 500))])
    wrong = r" bytes \((19|2\d)\..* with several records.*" + name.replace(".", r"\.") + ":40"
    with pytest.raises(InputError, match=wrong):
        read_files(tmp_path, inputs, max_rejected_fraction=0.01, read={"format": "auto"})


def test_the_documents_beside_the_files_are_named_in_the_log(tmp_path, inputs, monkeypatch):
    for name in ("license_keys.csv", "LICENSE.txt", "README", "_SUCCESS"):
        write(inputs, name, [line(number) for number in range(9)])
    logged = []
    monkeypatch.setattr(
        component.logging, "info", lambda text, *values: logged.append(text % values)
    )
    assert list(read_files(tmp_path, inputs).by_file) == ["license_keys.csv"]
    [shown] = [text for text in logged if text.startswith("Not read: ")]
    assert shown.startswith("Not read: LICENSE.txt, README, whose names are those of documents")


def test_a_file_without_a_usable_line_is_named_beside_good_ones(tmp_path, inputs):
    write(inputs, "a.txt", [line(n) for n in range(400)])
    write(inputs, "b.txt", ["", "__label__x three", "no label"])
    write(inputs, "c.txt", ["", " "])
    write(inputs, "d.csv", ["rating,text", "5,fine", *["rating,text"] * 50])
    read = read_files(tmp_path, inputs, max_rejected_fraction=0.01, read={"format": "auto"})
    assert read.counts["rejected/repeated_header"] == 50
    assert read.unused == (
        f"no line of {inputs}/b.txt can be used: bad_label 2, no_text 1; the first: __label__x "
        "three"
    )


def test_a_file_of_which_bytes_are_lost_too_is_named_if_no_line_is_usable(tmp_path, inputs):
    write(inputs, "a.txt", [line(n) for n in range(400)])
    write(inputs, "b.txt", ["x" * (MAX_LINE_BYTES + 1), "__label__x three"])
    read = read_files(tmp_path, inputs, max_rejected_fraction=1.0)
    assert read.counts["lost_bytes"] == MAX_LINE_BYTES + 1
    reasons = "bad_label 1, line_too_long 1"
    assert read.unused.startswith(f"no line of {inputs}/b.txt can be used: {reasons}; the first: ")
