"""`amazon-reviews data check`: its output, exit codes, and short form after a failed run."""

import json
import pickle
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from cli import run as run_command_module
from cli.app import app
from cli.console import error_console
from cli.run_state import RunState
from core.errors import InputError
from core.events import Failed
from pipeline.config import load_config
from pipeline.inputs import input_files
from tests.full_disk import full_disk
from tests.loaded import run_command
from tests.pipeline import exports


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.jsonl").write_bytes(exports.shop())
    return folder


def check(*words):
    return CliRunner().invoke(app, ["data", "check", *map(str, words)])


def test_a_look_imports_neither_tensorflow_nor_beam(shop):
    done, printed, loaded = run_command("data", "check", str(shop))
    assert done.returncode == 2, done.stderr
    assert "label: bewertung" in printed
    assert loaded & {"tensorflow", "tfx", "apache_beam", "tensorflow_transform"} == set()


def test_a_look_does_not_execute_the_code_in_a_parquet_file(tmp_path):
    """The vulnerability CVE-2023-47248 of an old pyarrow, in a process without Beam."""
    code = pickle.dumps(Touch(tmp_path / "touched"))
    kind = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": code}
    fields = [pa.field("label", pa.int64()), pa.field("text", pa.string(), metadata=kind)]
    table = pa.table([[1, 0], ["a", "b"]], schema=pa.schema(fields))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "code.parquet")
    done, _, _ = run_command("data", "check", str(tmp_path / "in"))
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr
    assert not (tmp_path / "touched").exists()


class Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, file):
        self._file = file

    def __reduce__(self):
        return Path.touch, (self._file,)


def test_what_a_look_prints(shop, tmp_path):
    found = check(shop)
    assert found.exit_code == 2 and found.stderr == ""
    lines = [line.rstrip() for line in found.stdout.splitlines()]
    assert lines[0].endswith("1 file  57,390 bytes  all 300 lines read")
    assert "bewertung  label    1,0 von 5 Sternen" in lines
    assert "artikel    ignored  A0" in lines
    assert "3,0 von 5 Sternen     60  left out" in lines
    assert "scripts  Latin 100%" in lines
    assert (
        "splits  300 read: 188 train, 24 eval, 28 test, 60 left out by label, 0 rejected" in lines
    )
    at = lines.index("a run would not start: 1 problem")
    assert lines[at + 1 :] == [
        "next:",
        f"  amazon-reviews data check {shop} --write mine.yaml",
        "  amazon-reviews run --config mine.yaml",
    ]
    [settings] = [index for index, line in enumerate(lines) if line == "settings"]
    assert yaml.safe_load("\n".join(lines[settings + 1 : at]))["data"]["input_base"] == str(shop)


def test_the_documents_beside_the_data_are_named(tmp_path):
    rows = "".join(f"{n % 5 + 1},good {n}\n" for n in range(200))
    for name in ("license_keys.csv", "LICENSE.txt", *(f"notes{number}.md" for number in range(9))):
        (tmp_path / name).write_text(f"rating,review\n{rows}")
    found = check(tmp_path).stdout.splitlines()
    assert found[0].endswith("1 file  2,104 bytes  all 200 lines read") and found[3] == (
        "not read  LICENSE.txt, notes0.md, notes1.md, notes2.md, notes3.md and 5 more, whose names "
        "are those of documents, hidden files or backups; to read one, rename it, or name it in "
        "data.splits"
    )


def test_the_next_commands_are_complete_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    rows = "".join(f"{n % 5 + 1};schön {n}\n" for n in range(200))
    (tmp_path / "in" / "a.csv").write_text(f"rating;review\n{rows}", encoding="utf-16")
    *commands, run = check("in").stdout.partition("\nnext:\n")[2].splitlines()
    for command in commands:
        CliRunner().invoke(app, shlex.split(command)[1:])
    assert check("--config", "mine.yaml").exit_code == 0
    assert run.split() == ["amazon-reviews", "run", "--config", "mine.yaml"]


def test_the_settings_that_are_written_start_a_run(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = check(shop, "--write", "mine.yaml")
    assert found.exit_code == 2
    assert found.stdout.splitlines()[-1] == "  amazon-reviews run --config mine.yaml"
    again = check("--config", "mine.yaml")
    assert again.exit_code == 0
    last = again.stdout.splitlines()[-1]
    assert last == "a run would start: amazon-reviews run --config mine.yaml"
    written = (tmp_path / "mine.yaml").read_text()
    refused = check(shop, "--write", "mine.yaml")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "--write: mine.yaml exists already; remove it, or write another file\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check(shop, "--write", "~/mine.yaml").stderr == refused.stderr.replace(" m", " ~/m")
    assert (tmp_path / "mine.yaml").read_text() == written


def test_settings_that_do_not_fit_on_the_disk_leave_no_empty_file(shop, tmp_path):
    with full_disk(10):
        found = check(shop, "--write", tmp_path / "mine.yaml")
    assert found.exit_code == 2
    assert f"--write: {tmp_path}/mine.yaml cannot be written: File too large" in found.stderr
    assert not list(tmp_path.glob("*mine.yaml*"))


@pytest.mark.parametrize("name", ["phones 📱.jsonl", 'a "b" {c}: #d.jsonl', "ü\u2028\x85.jsonl"])
def test_any_name_of_a_file_and_of_its_folder_is_looked_at(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / name).write_bytes(exports.shop())
    for path in (folder, folder / name):
        found = check(path, "--set", "data.labels=stars", "--json")
        assert found.stderr == ""
        assert [file["path"] for file in json.loads(found.stdout)["files"]] == [name]


def test_the_same_value_as_json(shop):
    found = check(shop, "--set", "data.labels=stars", "--json")
    assert found.exit_code == 2
    value = json.loads(found.stdout)
    assert value["starts"] is False and value["is_settled"] is True
    assert value["task"] == {
        "name": "stars",
        "classes": ["1", "2", "3", "4", "5"],
        "problem": "",
    }
    assert yaml.safe_load(value["settings"])["data"]["labels"] == "stars"
    [file] = value["files"]
    assert file["columns"][1]["role"] == "label"


def test_the_columns_of_other_records_follow_those_of_most(tmp_path):
    records = [
        {"id": "x", "text": "good", "title": "a", "rating": 5},
        {"reviewText": "bad", "summary": "b", "overall": 1},
    ]
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (tmp_path / "mixed.jsonl").write_text(lines * 30)
    shown = check(tmp_path).stdout.partition("columns\n")[2].splitlines()
    assert [line.split("  ")[0] for line in shown[1:8]] == [
        *("overall", "summary", "reviewText"),
        *("rating", "title", "text", "id"),
    ]
    [file] = json.loads(check(tmp_path, "--json").stdout)["files"]
    assert {column["name"]: column["role"] for column in file["columns"]} == {
        **{"overall": "label", "summary": "title", "reviewText": "text", "id": "ignored"},
        **{name: f"{name} of other records" for name in ("title", "text")},
        "rating": "label of other records",
    }


def test_one_problem_without_a_remedy_is_named_as_one(tmp_path):
    found = check(str(tmp_path / "missing"))
    assert found.exit_code == 2
    assert found.stdout.endswith(
        "a run would not start: 1 problem\nsettle the problem first, and check again\n"
    )


def test_a_check_requires_a_folder():
    found = check()
    assert found.exit_code == 2
    assert found.stderr.startswith("data.input_base: not set, so there is no folder to check.")
    found = check("--set", "data.labels=starz", "x")
    assert found.exit_code == 2 and len(found.stderr.splitlines()) == 1


def test_text_of_a_file_is_no_markup_and_no_control_sequence(tmp_path):
    rows = "".join(
        json.dumps({"rating": n % 5 + 1, "text": f"[red]a[/red] :smile: \x1b[31m {n}"}) + "\n"
        for n in range(300)
    )
    (tmp_path / "a.jsonl").write_text(rows)
    found = check(tmp_path)
    assert found.exit_code == 0
    assert "[red]a[/red] :smile: \\x1b[31m 0" in found.stdout and "\x1b" not in found.stdout


@pytest.mark.parametrize("component", [None, "ReviewExampleGen"])
def test_a_failed_run_of_own_data_begins_with_what_the_data_lack(shop, component, capsys):
    config = load_config(None, [f"data.input_base={shop}"])
    error = f"{shop}/shop.jsonl has no columns with known names"
    watched = RunState(failure=Failed(error, component, wrong_input=True))
    options = f" --set data.input_base={shop}"
    assert run_command_module.show(error_console(), config, watched, options=options) == 2
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert lines[0] == "problem 1" and "label: bewertung" in lines
    assert f"the whole check of the data: amazon-reviews data check{options}" in lines
    where = f"{component}: " if component else ""
    assert lines[-2:] == [f"failed: {where}{error}", "log: None"]


@pytest.mark.parametrize(
    ("failure", "base"),
    [
        (Failed("no such layer", "Trainer", wrong_input=True), "shop"),
        (Failed("killed", "ReviewExampleGen"), "shop"),
        (Failed("damaged", "ReviewExampleGen", wrong_input=True), None),
    ],
)
def test_another_failure_has_no_look_at_the_data(shop, failure, base, capsys):
    config = load_config(None, [f"data.input_base={shop}"] if base else [])
    run_command_module.show(error_console(), config, RunState(failure=failure))
    assert capsys.readouterr().err.splitlines()[0].startswith("failed: ")


def test_a_span_that_is_late_is_one_line(tmp_path, capsys):
    day = tmp_path / "2026-11-01"
    day.mkdir()
    (day / "reviews.csv").write_text("rating,text\n5,good\n")
    base = f"{tmp_path}/{{YYYY}}-{{MM}}-{{DD}}"
    config = load_config(None, [f"data.input_base={base}", "data.span=2026-11-02"])
    with pytest.raises(InputError) as raised:
        input_files(config)
    failure = Failed(str(raised.value), None, wrong_input=True)
    assert run_command_module.show(error_console(), config, RunState(failure=failure)) == 2
    line = f"failed: data.span: span 2026-11-02 of {base} is not there yet; there is 2026-11-01"
    assert capsys.readouterr().err.splitlines() == [line, "log: None"]


def test_settings_with_which_no_run_would_start_are_not_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids").mkdir()
    rows = "".join(f"ID-{n},a text of number {n}\n" for n in range(100))
    (tmp_path / "ids" / "a.csv").write_text(f"label,text\n{rows}")
    found = check("ids", "--write", "mine.yaml")
    assert found.exit_code == 2 and "written" not in found.stdout
    assert not (tmp_path / "mine.yaml").exists()
