"""Files of reviews become a file of predictions: formats, units, resumption."""

import errno
import json
import os
import shutil
from datetime import date, timedelta
from unittest.mock import Mock

import pytest

from core.errors import InputError, UserError
from preprocessing.reading.columns import Layout
from preprocessing.reading.pieces import Piece
from preprocessing.reading.records import ReadOptions
from serving.batch import output, run, work
from serving.batch.run import Interrupted, find_inputs
from serving.predict_text import PredictText
from tests.preprocessing.reading.review_files import (
    COMPRESS,
    as_file,
    csv_text,
    parquet_bytes,
    write,
)
from tests.serving.batch.outputs import FILES, SUFFIXES, TEXTS, rows, wanted
from tests.serving.models import TOPICS, push_classes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "suffix"), zip(FILES, [*COMPRESS, ""], strict=True))
def test_every_format_comes_back_in_order(score, small_units, tmp_path, kind, suffix):
    data = FILES[kind] if isinstance(FILES[kind], bytes) else FILES[kind].encode()
    name = f"in{SUFFIXES.get(kind, '.' + kind)}{suffix}"
    path = write(tmp_path, name, COMPRESS[suffix](data))
    output = tmp_path / "scores.parquet"
    summary = score(path, output=output.name)
    assert (summary.reviews, summary.rejected) == (len(TEXTS), {})
    assert rows(output) == wanted(path, first=2 if kind == "csv" else 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, output.name])


def test_every_format_of_the_output_has_the_same_rows(score, tmp_path):
    path = write(tmp_path, 'a "b", c.txt', FILES["plain"])
    for suffix in ("csv", "jsonl", "parquet"):
        score(path, output=f"scores.{suffix}")
        assert rows(tmp_path / f"scores.{suffix}") == wanted(path)


def test_a_column_of_ids_goes_through(score, tmp_path, small_units):
    texts, ids = ["good", "", "bad"], ["a,\u00e9", "lost", None]
    write(tmp_path, "1.csv", csv_text([("text", "key"), *zip(texts, ids, strict=True)]))
    lines = [json.dumps({"text": t, "key": i}) for t, i in zip(texts, ids, strict=True)]
    write(tmp_path, "2.jsonl", "\n".join(lines))
    write(tmp_path, "3.parquet", parquet_bytes({"text": texts, "key": ids}))
    files = [str(tmp_path / name) for name in ("1.csv", "2.jsonl", "3.parquet")]
    options = ReadOptions(id="key")
    for suffix in ("csv", "jsonl", "parquet"):
        score(*files, write(tmp_path, "4.txt", "good"), output=f"out.{suffix}", options=options)
        found = rows(tmp_path / f"out.{suffix}", "id")
        assert found == ["a,\u00e9", ""] * 3 + [""], suffix
    with pytest.raises(InputError, match=r"1\.csv has no column 'sku' \(--id\): its columns"):
        score(files[0], options=ReadOptions(id="sku"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        # As mongoexport writes them.
        (
            "1.jsonl",
            '{"_id": {"$oid": "5f\u00e9"}, "text": "good"}\n{"_id": ["a", 2], "text": "bad"}',
            ['{"$oid": "5f\u00e9"}', '["a", 2]'],
        ),
        ("2.jsonl", '{"_id": "a\\u0000\\ud800", "text": "good"}', [r"a\x00\ud800"]),
        ("3.csv", b"_id,text\nM\xfcller,good\n\xc3\xa9,bad\n", [r"M\xfcller", "\u00e9"]),
        (
            "4.parquet",
            parquet_bytes({"_id": [{"day": date(2026, 1, 2), "shop": 1}], "text": ["good"]}),
            ['{"day": "2026-01-02", "shop": 1}'],
        ),
        ("5.parquet", parquet_bytes({"_id": [timedelta(hours=2)], "text": ["good"]}), ["2:00:00"]),
    ],
    ids=["objects", "NUL and surrogate", "bytes in CSV", "struct", "duration"],
)
def test_no_id_with_a_value_is_empty(score, tmp_path, name, content, expected):
    path = write(tmp_path, name, content)
    score(path, output="out.jsonl", options=ReadOptions(id="_id"))
    assert rows(tmp_path / "out.jsonl", "id") == expected


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_row_with_an_id_and_without_a_text_has_no_unknown_column(score, tmp_path, suffix):
    columns = {"text": ["good", "", None], "key": ["a 1", "a 2", "a 3"]}
    summary = score(
        write(tmp_path, f"in.{suffix}", as_file(suffix, columns)), options=ReadOptions(id="key")
    )
    assert summary.rejected == {"no_text": 2}


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """A pushed model of five classes with difficult names."""
    return push_classes(tmp_path_factory.mktemp("topics") / "1")


TOPIC_TEXTS = [f"a c{n % 5} text {n}" for n in range(700)]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_name_and_the_probability_of_the_predicted_class(score, tmp_path, topics, suffix):
    path = write(tmp_path, "in.txt", "\n".join(TOPIC_TEXTS))
    score(path, output=f"scores.{suffix}", model=topics)
    assert rows(tmp_path / f"scores.{suffix}") == [
        (path, n, pytest.approx(10 / 14), TOPICS.names[(n - 1) % 5]) for n in range(1, 701)
    ]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_probabilities_of_all_classes_have_a_column_each(
    score, small_units, tmp_path, topics, suffix
):
    path = write(tmp_path, "in.txt", "\n".join(TOPIC_TEXTS) + "\n\n")
    file = tmp_path / f"scores.{suffix}"
    summary = score(path, output=file.name, model=topics, all_probabilities=True)
    assert summary.rejected == {"no_text": 1}
    assert rows(file, "label") == [TOPICS.names[n % 5] for n in range(700)]
    for index, name in enumerate(TOPICS.names):
        found = list(map(float, rows(file, f"probability:{name}")))
        wanted = [(10 if n % 5 == index else 1) / 14 for n in range(700)]
        assert found == pytest.approx(wanted), name


def test_batches_of_many_classes_are_small(score, small_units, tmp_path, topics, monkeypatch):
    sizes, call = [], PredictText.__call__
    monkeypatch.setattr(
        PredictText,
        "__call__",
        lambda self, texts: sizes.append(len(texts)) or call(self, texts),
    )
    path = write(tmp_path, "in.txt", "\n".join(TOPIC_TEXTS))
    assert score(path, model=topics).reviews == sum(sizes) == 700
    assert max(sizes) == 300 // 5


def test_the_probabilities_of_two_classes_follow_the_columns_of_before(score, tmp_path):
    path = write(tmp_path, "in.txt", "good\nbad\n")
    score(path, output="plain.csv")
    score(path, output="all.csv", all_probabilities=True)
    plain, all_ = ((tmp_path / f"{name}.csv").read_text().splitlines() for name in ("plain", "all"))
    assert plain[0] == "file,position,probability,label"
    assert all_[0] == f"{plain[0]},probability:negative,probability:positive"
    assert all_[1:] == [f"{plain[1]},0.100000024,0.9", f"{plain[2]},0.9,0.100000024"]


def test_labels_of_the_input_are_ignored_whatever_the_task_of_the_settings(score, tmp_path, topics):
    path = write(tmp_path, "in.csv", "label,text\nunknown,c1 and more\n7,c3 and more\n,c2\n")
    for task in ("sentiment", "each", "stars"):
        options = ReadOptions(task=task, columns={"label": "label"})
        assert score(path, model=topics, options=options).rejected == {}
        assert rows(tmp_path / "scores.csv", "label") == [TOPICS.names[n] for n in (1, 3, 2)]


def test_existing_files_and_folders_are_no_patterns(tmp_path, monkeypatch):
    folder = tmp_path / "x[1]"
    for place, name in ((folder, "new.txt"), (tmp_path / "x1", "neighbour.txt")):
        place.mkdir()
        (place / name).write_text("good")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for word in ("new.txt", "../x[1]", "~/x[1]", str(folder)):
        [found] = find_inputs([word])
        assert found.path == f"{folder}/new.txt"


def test_several_files_globs_and_folders(score, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.txt", "a.txt", "c.jsonl"):
        write(folder, name, '{"text": "good"}\n' if name == "c.jsonl" else "good one\nbad one\n")
    write(folder, "README.md", "no review")
    (folder / "deep").mkdir()
    d = write(folder / "deep", "d.txt", "good one\n")
    a, b, c = (str(folder / name) for name in ("a.txt", "b.txt", "c.jsonl"))
    output = tmp_path / "scores.csv"

    def files(*words):
        score(*words)
        return [(row[0], row[1]) for row in rows(output)]

    # The same reviews in two files are scored in both.
    assert files(folder) == [(a, 1), (a, 2), (b, 1), (b, 2), (c, 1), (d, 1)]
    assert files(c, b) == [(c, 1), (b, 1), (b, 2)]
    assert files(b, f"{folder}/[bc].*") == [(b, 1), (b, 2), (c, 1)]
    with pytest.raises(InputError, match=r"--input: .*/x\*\.txt matches no file"):
        files(f"{folder}/x*.txt")


def test_a_failure_is_one_line_and_leaves_no_output(score, tmp_path, monkeypatch):
    failing = Mock(side_effect=OSError("no space left"))
    monkeypatch.setattr(PredictText, "__call__", failing)
    message = r"no space left.*repeat the command; 0 of 1 units are kept"
    with pytest.raises(UserError, match=message):
        score(write(tmp_path, "in.txt", "good"))
    assert not (tmp_path / "scores.csv").exists()


def test_an_interruption_reports_what_the_next_run_continues(score, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_BYTES_PER_UNIT", 40)
    paths = [write(tmp_path, name, "good phone, good case\n") for name in ("a.txt", "b.txt")]
    loads = work.load_predict_text
    monkeypatch.setattr(work, "load_predict_text", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(Interrupted, match=r"^0 of 2 units are kept$"):
        score(*paths)
    monkeypatch.setattr(work, "load_predict_text", loads)
    monkeypatch.setattr(output, "publish", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(Interrupted, match=r"^2 of 2 units are kept$"):
        score(*paths)


def test_a_large_unit_ends_with_its_file_and_small_files_share_one(monkeypatch):
    monkeypatch.setattr(work, "_BYTES_PER_UNIT", 64)

    def units(*sizes):
        layout = Layout("fasttext")
        pieces = (Piece(f"/{n}", layout, 0, 0, size, False, size) for n, size in enumerate(sizes))
        return [len(unit) for unit in work.divide_into_units(pieces)]

    assert units(18, 18, 18, 18) == [1, 1, 1, 1]
    assert units(*[1] * 40) == [16, 16, 8]
    assert units(60, 60) == [1, 1]


def test_another_input_model_option_or_code_is_other_work(score, tmp_path, model, monkeypatch):
    plain, digests = run._digest, []
    monkeypatch.setattr(run, "_digest", lambda *args: digests.append(plain(*args)) or digests[-1])
    path = write(tmp_path, "in.txt", "good")
    for _ in range(2):
        score(path)
    score(path, options=ReadOptions(format="fasttext"))
    other = shutil.copytree(model, tmp_path / "2")
    score(path, model=other)
    # Another model under the same version, with the same time of modification.
    write(tmp_path, "2/assets/vocabulary.txt", "one more")
    score(path, model=other)
    score(path, model=other, all_probabilities=True)
    monkeypatch.setattr(run, "all_code", lambda: "changed")
    score(path)
    score(write(tmp_path, "in.txt", "nice"))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 7


def test_a_file_that_changes_while_it_is_scored_is_an_error(score, tmp_path, monkeypatch):
    path, plain = write(tmp_path, "in/a.txt", "good"), run._score

    def score_and_change(*args):
        plain(*args)
        write(tmp_path, "in/a.txt", "best")

    monkeypatch.setattr(run, "_score", score_and_change)
    with pytest.raises(InputError, match="a file changed while it was scored"):
        score(path)
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("name", "words", "output"),
    [
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


def test_one_output_is_written_by_one_process(score, tmp_path):
    """A lock belongs to an open file, so it also refuses a second one of the same process."""
    path = write(tmp_path, "in.txt", FILES["plain"])
    target = tmp_path / "scores.csv"
    with work.locked(str(tmp_path / ".scores.csv.partial"), str(target)):
        with pytest.raises(InputError, match=f"^--output: another process writes {target}; repe"):
            score(path)
        score(path, output="other.csv")
    assert not target.exists()
    score(path)
    assert len(rows(target)) == len(TEXTS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", "other.csv", "scores.csv"]


def test_a_lock_in_a_folder_that_was_removed_is_acquired_again(tmp_path, monkeypatch):
    folder = tmp_path / ".scores.csv.partial"
    lock_file, calls = work.lock_file, []

    def slow(path):
        """Lock the file, and remove its folder the first time, as a process at its end does."""
        calls.append(path)
        descriptor = lock_file(path)
        if len(calls) == 1:
            work.remove(str(folder))
        return descriptor

    monkeypatch.setattr(work, "lock_file", slow)
    with work.locked(str(folder), "scores.csv"):
        assert len(calls) == 2
        second = work.locked(str(folder), "scores.csv")
        with pytest.raises(InputError, match="another process writes"), second:
            pass


def test_a_file_system_without_locks_is_one_line(tmp_path, monkeypatch):
    def lock_file(path):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(work, "lock_file", lock_file)
    folder = str(tmp_path / ".scores.csv.partial")
    with pytest.raises(InputError) as error, work.locked(folder, "scores.csv"):
        pass
    reason = os.strerror(errno.ENOLCK)
    assert str(error.value) == f"--output: {folder} cannot be created or locked: {reason}"


def test_an_output_in_a_folder_that_cannot_be_made(score, tmp_path):
    write(tmp_path, "file", "")
    with pytest.raises(InputError, match="cannot be created"):
        score(write(tmp_path, "in.txt", "good"), output="file/scores.csv")


@pytest.mark.exhaustive
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


class Killed(BaseException):
    """The end of the process at some moment."""


@pytest.mark.parametrize("number", [0, 1])
def test_a_kill_between_the_two_files_of_the_output_loses_none(
    score, tmp_path, monkeypatch, number
):
    path = write(tmp_path, "in.txt", b"good\n\xff\nbad\n")
    rename, renamed = output.FileSystems.rename, []

    def kill(sources, targets):
        if not targets[0].endswith(".arrow"):
            renamed.append(targets[0])
            if len(renamed) > number:
                raise Killed
        rename(sources, targets)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(output.FileSystems, "rename", kill)
        score(path)
    # Whoever sees the output sees the rejected lines too.
    assert not (tmp_path / "scores.csv").exists()
    assert (tmp_path / "scores.csv.rejected.jsonl").exists() == (number == 1)
    summary = score(path)
    assert (summary.reviews, summary.rejected, summary.resumed) == (2, {"invalid_utf8": 1}, 1)
    assert rows(tmp_path / "scores.csv") == wanted(path, ["good", "", "bad"])[::2]
    assert len((tmp_path / "scores.csv.rejected.jsonl").read_text().splitlines()) == 1
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        *("in.txt", "scores.csv", "scores.csv.rejected.jsonl")
    ]


def test_a_unit_that_failed_half_way_is_scored_again(score, tmp_path, monkeypatch):
    path = write(tmp_path, "in.txt", "good\n" * 10)
    plain = work._write_lines

    def write_half(stream, index, *, position, **columns):
        half = {name: values[:5] for name, values in columns.items()}
        plain(stream, index, position=position[:5], **half)
        raise OSError("no space left")

    with monkeypatch.context() as patch, pytest.raises(UserError, match="0 of 1 units are kept"):
        patch.setattr(work, "_write_lines", write_half)
        score(path)
    summary = score(path)
    assert (summary.reviews, summary.resumed) == (10, 0)
    assert len(rows(tmp_path / "scores.csv")) == 10


def test_row_groups_of_several_units_have_every_row_once(score, small_units, tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_ROWS_AT_ONCE", 100)
    path = write(tmp_path, "in.txt", FILES["plain"])
    assert score(path).reviews == len(TEXTS)
    assert rows(tmp_path / "scores.csv") == wanted(path)
