"""The sample of the texts of requests, which `amazon-reviews serve` keeps if it is set."""

import datetime
import json
import re
import signal
import stat

import pytest

from core.errors import ConfigError
from preprocessing.labels import SENTIMENT
from preprocessing.reading.records import ReadOptions
from serving.drift.new_reviews import read_new_reviews
from serving.rest import sample
from serving.rest.sample import RequestSample
from serving.rest.settings import Server
from tests.serving.rest.running import serving

TODAY = datetime.date(2024, 2, 28)
"""The day in the tests that need several days. The real one could end during a test."""


def kept(folder):
    """Return the texts in all files."""
    return [
        json.loads(line)["text"]
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def make(folder, **settings):
    made = RequestSample(Server(sample_folder=str(folder), **settings), {})
    made.prepare()
    return made


def test_the_sample_is_uniform_and_has_a_limit(tmp_path):
    found = make(tmp_path, sample_texts=100)
    for start in range(0, 2000, 5):
        found.add([f"Größe\n{n}".encode() for n in range(start, start + 5)])
    found.write()
    texts = kept(tmp_path)
    assert len(set(texts)) == 100
    # Of 100 uniform draws from 2,000, fewer than 25 or more than 75 are in a half with p < 1e-6.
    assert 25 < sum(int(text.split("\n")[1]) < 1000 for text in texts) < 75
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_text_that_is_not_utf8_is_left_out_and_a_long_one_is_cut_off(tmp_path):
    found = make(tmp_path)
    found.add([b"\xff", "é".encode() * 6000, b"good"])
    found.write()
    assert kept(tmp_path) == ["é" * 5000, "good"]


def test_a_day_has_a_file_and_old_ones_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "_today", lambda: TODAY)
    days = [TODAY - datetime.timedelta(days=n) for n in (2, 1, 0)]
    for day in days:
        (tmp_path / f"requests-{day}-1-2.jsonl").write_text("{}\n")
    (tmp_path / "mine.jsonl").write_text("")
    found = make(tmp_path, sample_days=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "mine.jsonl",
        *(f"requests-{day}-1-2.jsonl" for day in days[1:]),
    ]
    found.add([b"today"])
    monkeypatch.setattr(sample, "_today", lambda: TODAY + datetime.timedelta(days=1))
    found.add([b"tomorrow"])
    found.write()
    names = {re.sub(r"-\d+-\d+\.", ".", file.name) for file in tmp_path.iterdir()}
    tomorrow = TODAY + datetime.timedelta(days=1)
    assert names == {"mine.jsonl", f"requests-{TODAY}.jsonl", f"requests-{tomorrow}.jsonl"}
    [file] = tmp_path.glob(f"requests-{tomorrow}-*")
    assert json.loads(file.read_text()) == {"text": "tomorrow"}


@pytest.mark.parametrize(
    "columns",
    [
        {"label": "topic", "title": "subject", "text": "body"},
        {"title": "subject"},
        {"label": "topic", "text": "body"},
        {"title": None, "text": "body"},
        {"label": "topic"},
    ],
)
def test_watch_reads_the_sample_with_the_columns_of_the_settings(tmp_path, columns):
    found = RequestSample(Server(sample_folder=str(tmp_path)), columns)
    texts = [f"great phone: number {n}".encode() for n in range(30)]
    found.add(texts)
    found.write()
    new = read_new_reviews([str(tmp_path)], ReadOptions(columns=columns), SENTIMENT)
    assert sorted(new.texts) == sorted(texts)
    assert new.labels is None


def test_a_folder_that_cannot_be_written_is_a_setting_to_correct(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"server\.sample_folder: .*file/folder cannot be written"
    ):
        make(tmp_path / "file" / "folder")


@pytest.mark.slow
def test_a_server_writes_its_sample_at_its_end_and_no_text_into_a_log(tmp_path):
    from tests.serving.rest.models import push

    push(tmp_path / "serving", 1)
    folder = tmp_path / "kept"
    with serving(tmp_path, sample_folder=folder) as (process, server, lines):
        assert server.predict("good phone", "a secret").status == 200
        assert server.predict(5).status == 400
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0
    assert kept(folder) == ["good phone", "a secret"]
    assert "secret" not in "".join([*lines, out, error])
