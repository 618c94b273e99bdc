"""Files of reviews become a file of predictions: formats, units, rejected lines, resumption."""

import csv
import errno
import fcntl
import gzip
import json
import shutil
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from core.errors import InputError, UserError
from preprocessing.reading import cut
from preprocessing.reading.records import ReadOptions
from serving.batch import run, stage, units, work
from serving.batch.run import BatchError, Request, score_files
from serving.batch.scorer import Scorer
from serving.batch.work import OutputError
from tests.preprocessing.reading.review_files import COMPRESS, csv_text, parquet_bytes, write
from tests.serving.models import push
from tests.serving.test_signing import write_key

pytestmark = pytest.mark.slow

TEXTS = [f"{'good' if n % 3 else 'bad'} phone {n}" for n in range(3000)]
FILES = {
    "fasttext": "\n".join(f"__label__{n % 2 + 1} {text}" for n, text in enumerate(TEXTS)),
    "plain": "\n".join(TEXTS),
    "csv": csv_text([("rating", "text"), *[(n % 6 or "", t) for n, t in enumerate(TEXTS)]]),
    "jsonl": "\n".join(json.dumps({"text": text}) for text in TEXTS),
    "parquet": parquet_bytes({"text": TEXTS, "rating": [None] * len(TEXTS)}, 500),
}
SUFFIXES = {"fasttext": ".ft.txt", "plain": ".txt"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "1"
    push(folder)
    return str(folder)


@pytest.fixture
def small_units(monkeypatch):
    """Pieces and units of a few hundred lines."""
    monkeypatch.setattr(cut, "_PLAIN_BYTES", 4_000)
    monkeypatch.setattr(units, "_BYTES_PER_UNIT", 9_000)


@pytest.fixture
def score(model, tmp_path):
    def do(*inputs, output="scores.csv", **changes):
        request = Request(
            [str(word) for word in inputs], str(tmp_path / output), "csv", model, ReadOptions(), []
        )
        return score_files(request._replace(**changes))

    return do


def rows(path):
    """(file, position, probability, label) of each review in an output."""
    if path.suffix == ".parquet":
        found = pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open(newline="") as file:
            found = list(csv.DictReader(file))
    return [(r["file"], int(r["position"]), float(r["probability"]), r["label"]) for r in found]


def rejected(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["file"], line["position"]): line["reason"] for line in lines}


def wanted(path, texts=TEXTS, first=1):
    return [
        (
            str(path),
            n,
            pytest.approx(0.9 if "good" in t else 0.1),
            "positive" if "good" in t else "negative",
        )
        for n, t in enumerate(texts, first)
    ]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("kind", FILES)
def test_every_format_comes_back_in_order(score, small_units, tmp_path, kind, suffix):
    data = FILES[kind] if isinstance(FILES[kind], bytes) else FILES[kind].encode()
    name = f"in{SUFFIXES.get(kind, '.' + kind)}{suffix}"
    path = write(tmp_path, name, COMPRESS[suffix](data))
    output = tmp_path / "scores.parquet"
    summary = score(path, output=output.name)
    assert (summary.reviews, summary.rejected) == (len(TEXTS), {})
    assert rows(output) == wanted(path, first=2 if kind == "csv" else 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, output.name])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_format_of_the_output_has_the_same_rows(score, tmp_path, suffix):
    path = write(tmp_path, 'a "b", c.txt', FILES["plain"])
    score(path, output=f"scores.{suffix}")
    assert rows(tmp_path / f"scores.{suffix}") == wanted(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_format_on_standard_output_has_the_same_rows(model, tmp_path, capfdbinary, suffix):
    path = write(tmp_path, "in.txt", FILES["plain"])
    score_files(Request([path], "-", suffix, model, ReadOptions(), []))
    printed = tmp_path / f"printed.{suffix}"
    printed.write_bytes(capfdbinary.readouterr().out)
    assert rows(printed) == wanted(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", printed.name]


def test_several_files_globs_and_folders(score, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.txt", "a.txt", "c.jsonl"):
        write(folder, name, '{"text": "good"}\n' if name == "c.jsonl" else "good one\nbad one\n")
    write(folder, "README.md", "no review")
    a, b, c = (str(folder / name) for name in ("a.txt", "b.txt", "c.jsonl"))
    output = tmp_path / "scores.csv"

    def files(*words):
        score(*words)
        return [(row[0], row[1]) for row in rows(output)]

    # The same reviews in two files are scored in both.
    lines = {a: [(a, 1), (a, 2)], b: [(b, 1), (b, 2)], c: [(c, 1)]}
    assert files(folder) == lines[a] + lines[b] + lines[c]
    assert files(c, b) == lines[c] + lines[b]
    assert files(f"{folder}/*.txt") == lines[a] + lines[b]
    assert files(b, f"{folder}/[bc].*") == lines[b] + lines[c]
    with pytest.raises(InputError, match=r"--input: .*/x\*\.txt matches no file"):
        files(f"{folder}/x*.txt")


def test_an_empty_file_and_a_file_without_any_review(score, tmp_path):
    output = tmp_path / "scores.csv"
    assert score(write(tmp_path, "empty.txt", "")).reviews == 0
    assert rows(output) == []
    path = write(tmp_path, "blank.txt", "\n\n")
    assert score(path).rejected == {"no_text": 2}
    assert rows(output) == []
    score(write(tmp_path, "header.csv", "rating,text\n"), output="scores.parquet")
    assert rows(tmp_path / "scores.parquet") == []


@pytest.mark.parametrize("compressed", COMPRESS)
@pytest.mark.parametrize("name", ["in.txt", "in.ft.txt", "in.csv", "in.jsonl"])
def test_an_empty_file_of_every_format_has_no_review(score, tmp_path, name, compressed):
    path = write(tmp_path, f"{name}{compressed}", COMPRESS[compressed](b""))
    assert score(path) == (0, {}, 0)
    assert rows(tmp_path / "scores.csv") == []


def test_every_line_is_in_the_output_or_in_the_rejected_file(score, small_units, tmp_path):
    lines = [text.encode() for text in TEXTS]
    broken = {10: b"", 11: b"\xff", 1000: b"a\0", 2999: b"   "}
    for index, line in broken.items():
        lines[index] = line
    path = write(tmp_path, "half.txt", b"\n".join(lines))
    other = write(tmp_path, "other.jsonl", '{"text": "good"}\n{"text"\n{"text": ""}\n')
    summary = score(path, other)
    reasons = {
        (path, 11): "no_text",
        (path, 12): "invalid_utf8",
        (path, 1001): "invalid_utf8",
        (path, 3000): "no_text",
        (other, 2): "broken_json",
        (other, 3): "no_text",
    }
    assert rejected(tmp_path / "scores.csv.rejected.jsonl") == reasons
    assert summary.rejected == {"no_text": 3, "invalid_utf8": 2, "broken_json": 1}
    scored = {row[:2] for row in rows(tmp_path / "scores.csv")}
    everything = {(path, n) for n in range(1, 3001)} | {(other, n) for n in range(1, 4)}
    assert scored == everything - set(reasons)
    # The rejected lines of an earlier output are removed.
    score(write(tmp_path, "fine.txt", "good"))
    assert not (tmp_path / "scores.csv.rejected.jsonl").exists()


def test_a_truncated_archive_is_scored_up_to_its_end(score, tmp_path):
    archive = gzip.compress("\n".join(f"{text} {text.encode().hex()}" for text in TEXTS).encode())
    path = write(tmp_path, "cut.txt.gz", archive[: len(archive) // 2])
    summary = score(path)
    assert summary.rejected == {"corrupt_archive": 1}
    assert 1000 < summary.reviews < 2000
    [(_, position)] = rejected(tmp_path / "scores.csv.rejected.jsonl")
    assert position == summary.reviews + 1


class Broken(Exception):
    pass


def fail_after(monkeypatch, count):
    """Make the scoring of the batch with this number fail; return the list of scored batches."""
    scored = []
    plain = Scorer.score

    def failing(self, texts):
        if len(scored) == count:
            raise Broken("no space left")
        scored.append(len(texts))
        return plain(self, texts)

    monkeypatch.setattr(stage.Scorer, "score", failing)
    return scored


def test_a_failed_run_leaves_no_output_and_the_next_one_resumes(
    score, small_units, tmp_path, monkeypatch
):
    path = write(tmp_path, "in.txt", FILES["plain"])
    output, folder = tmp_path / "scores.csv", tmp_path / ".scores.csv.partial"
    with pytest.MonkeyPatch.context() as patch:
        fail_after(patch, 12)
        with pytest.raises(BatchError, match=r"no space left.*repeat the command"):
            score(path)
    assert not output.exists()
    finished = work.finished(str(folder))
    assert finished
    scored = fail_after(monkeypatch, -1)
    assert score(path).resumed == len(finished)
    assert 0 < sum(scored) < len(TEXTS)
    assert rows(output) == wanted(path)
    assert not folder.exists()


@pytest.mark.parametrize("change", ["input", "model", "options"])
def test_another_input_model_or_option_starts_from_the_beginning(
    score, small_units, tmp_path, monkeypatch, model, change
):
    path = write(tmp_path, "in.txt", FILES["plain"])
    with pytest.MonkeyPatch.context() as patch:
        fail_after(patch, 12)
        with pytest.raises(BatchError):
            score(path)
    changes, texts = {}, TEXTS
    if change == "input":
        texts = [text.replace("good", "nice") for text in TEXTS]
        write(tmp_path, "in.txt", "\n".join(texts))
    elif change == "model":
        changes = {"model_folder": shutil.copytree(model, tmp_path / "2")}
    else:
        changes = {"options": ReadOptions(format="fasttext")}
    assert score(path, **changes).resumed == 0
    assert rows(tmp_path / "scores.csv") == wanted(path, texts)


def test_a_run_that_verifies_the_model_uses_no_unit_of_one_that_did_not(
    score, tmp_path, monkeypatch
):
    path = write(tmp_path, "in.txt", FILES["plain"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run.output, "publish", Mock(side_effect=OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            score(path)
    key = write_key(tmp_path / "signing.pem").with_suffix(".pub").read_bytes()
    with pytest.raises(UserError, match="not loaded"):
        score(path, public_key=key)
    assert not (tmp_path / "scores.csv").exists()


def test_an_output_that_another_process_is_writing(score, tmp_path):
    path = write(tmp_path, "in.txt", "good")
    with (
        work.locked(str(tmp_path / ".scores.csv.partial")),
        pytest.raises(OutputError, match="another process is writing"),
    ):
        score(path)
    assert score(path).reviews == 1


def test_a_file_system_without_locks_is_written_to(score, tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks")))
    assert score(write(tmp_path, "in.txt", "good")).reviews == 1


@pytest.mark.parametrize(
    ("name", "words", "output"),
    [
        ("in.csv", ["{}/in.csv"], "in.csv"),
        ("in.csv", ["{}/*.csv"], "in.csv"),
        ("in.csv", ["{}"], "link/in.csv"),
        ("x.csv.rejected.jsonl", ["{}/*.jsonl"], "x.csv"),
    ],
)
def test_an_input_is_never_replaced(score, tmp_path, name, words, output):
    text = '{"text": "good"}\n' if name.endswith("jsonl") else "text\ngood\n"
    path = write(tmp_path, name, text)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"^--output: {path} is an input and would be replaced"):
        score(*(word.format(tmp_path) for word in words), output=output)
    assert (tmp_path / name).read_text() == text
    assert {found.name for found in tmp_path.iterdir()} == {name, "link"}


def test_an_output_in_a_folder_that_cannot_be_made(score, tmp_path):
    write(tmp_path, "file", "")
    with pytest.raises(OutputError, match="cannot be created"):
        score(write(tmp_path, "in.txt", "good"), output="file/scores.csv")


def test_workers_in_other_processes_give_the_same_output(score, small_units, tmp_path):
    path = write(tmp_path, "in.txt", FILES["plain"])
    args = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert score(path, beam_args=args).reviews == len(TEXTS)
    assert rows(tmp_path / "scores.csv") == wanted(path)


def test_progress_counts_every_line_once_and_ends_at_its_total(
    score, small_units, tmp_path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        run.progress,
        "report",
        lambda unit, done, total=None, source="": seen.append((unit, done, total, source)),
    )
    score(write(tmp_path, "in.txt", FILES["plain"] + "\n\n"))
    last = {(unit, source): done for unit, done, _, source in seen}
    [total] = [total for _, _, total, _ in seen if total]
    assert sum(done for (unit, _), done in last.items() if unit == "reviews") == len(TEXTS) + 1
    assert sum(done for (unit, _), done in last.items() if unit == "bytes") == total
