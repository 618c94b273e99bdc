"""The commands of guides that have no test of their own: their options, and what can run here."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
import yaml

from cli.app import app
from pipeline.config import PRESETS, load_config
from tests.checkout import CHECKOUT
from tests.e2e.conftest import LITTLE
from tests.e2e.harness import Workspace
from tests.serving.rest.running import serving

DOCS = CHECKOUT / "docs"
_BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAM = re.compile(
    r"^(?P<set>PIPELINE_SET='[^']*' )?(\.venv/bin/)?amazon-reviews (?P<words>.+)$"
)
_ENDS = re.compile(r"\s(\|\|?|&&?|>|2>|<|#|†|\()(.*)?$")


def blocks(page):
    """Return the blocks of commands on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [block for kind, block in _BLOCK.findall(text) if kind in ("", "sh")]


def commands(page):
    """Return (PIPELINE_SET, words) of each command `amazon-reviews` on a page."""
    found = []
    for block in blocks(page):
        for line in block.replace("\\\n", " ").splitlines():
            match = _PROGRAM.match(line.strip())
            if match:
                words = shlex.split(_ENDS.sub("", match["words"]))
                settings = (match["set"] or "").removeprefix("PIPELINE_SET=").strip(" '")
                found.append((settings, words))
    return found


PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.glob("how-to/*.md"))
"""The guides that add something have tests of their own: their settings exist only in a copy."""


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page) and "/add-" not in page])
def test_each_command_of_a_guide_has_options_and_settings_that_exist(page):
    for settings, words in commands(page):
        command, name = typer.main.get_command(app), "amazon-reviews"
        context = command.make_context(name, list(words), help_option_names=["--help"])
        while hasattr(context.command, "resolve_command"):
            rest = [*context._protected_args, *context.args]
            if not rest:
                break
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)
        config = context.params.get("config")
        is_preset = config and (PRESETS / f"{config}.yaml").exists()
        overrides = [*(context.params.get("overrides") or ())]
        environ = {"PIPELINE_SET": settings} if settings else {}
        if not config or is_preset:
            load_config(config if is_preset else None, overrides, environ=environ)


def run(workspace, command):
    """Run one command of a page in the folder of a workspace; return its output."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=workspace.folder,
        env={
            **workspace.env(),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_the_commands_that_score_reviews(finished):
    workspace, _ = finished
    folder = workspace.folder
    records = [{"title": f"Title {n}", "text": f"A great phone {n}"} for n in range(20)]
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (folder / "new-reviews.csv").write_text("title,review\nGood,Great phone\nBad,It broke\n")
    (folder / "tickets.jsonl").write_text(lines)
    (folder / "reviews").mkdir()
    (folder / "reviews" / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(pa.Table.from_pylist(records), folder / "more.parquet")
    (folder / "reviews.txt").write_text("Great phone\nIt broke\n")
    found = [
        block for block in blocks("how-to/score-reviews.md") if block.startswith("amazon-reviews")
    ]
    outputs = [run(workspace, block) for block in found]
    assert [re.match(r"(\d+) reviews scored", text)[1] for text in outputs] == [
        "2",
        "20",
        "40",
        "2",
    ]
    assert "read as CSV: title `title`, text `review`" in outputs[0]
    first = json.loads((folder / "scores.jsonl").read_text().splitlines()[0])
    assert {"probability:negative", "probability:positive"} < set(first)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_the_commands_that_show_runs(finished):
    workspace, _ = finished
    [listed] = json.loads(workspace.command("runs", "--json").stdout)
    page = [block for block in blocks("how-to/look-at-runs.md") if "amazon-reviews r" in block]
    assert len(page) == 4
    outputs = [
        run(workspace, re.sub(r"2026-11-\d\dT\d\d:\d\d", listed["run"], block)) for block in page
    ]
    assert listed["run"] in outputs[1]
    assert (workspace.folder / "report.html").read_text().startswith("<!doctype html>")
    assert (workspace.folder / "runs.html").read_text().startswith("<!doctype html>")
    assert outputs[3].strip()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_the_commands_that_watch(finished):
    workspace, _ = finished
    monday, tuesday = (
        block.replace(". .venv/bin/activate\n", "")
        for block in blocks("how-to/watch.md")
        if "sample_data.generate" in block
    )
    assert run(workspace, monday).splitlines()[-1].startswith("result    no alarm: ")
    *_, alarm = run(workspace, f"{tuesday.rstrip()} || test $? = 4").splitlines()
    assert re.match(
        r"result    alarm of severity \w+ \(scores, words.*\): label some hundred of", alarm
    )
    new = "--input new/monday.ft.txt --json"
    figures = json.loads(run(workspace, f"amazon-reviews watch {new}"))
    assert (figures["is_alarm"], figures["severity"]) == (False, "none")


def form(value):
    """Return the form of an answer: the keys of its objects, and the forms of its parts."""
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    if isinstance(value, list):
        # The words of another model have other effects, and some words have none.
        return [form(part) for part in value if not isinstance(part, dict) or "text" not in part]
    return type(value).__name__


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_the_requests_of_the_guide_to_serve(finished):
    workspace, _ = finished
    page = blocks("how-to/serve.md")
    requests = [number for number, block in enumerate(page) if block.startswith("curl ")]
    assert len(requests) == 7
    with serving(workspace.root) as (_, server, _):
        for number in requests:
            command = (
                page[number].replace(":8501/", f":{server.port}/").replace("curl ", "curl -s ")
            )
            answer = json.loads(run(workspace, command))
            shown = page[number + 1]
            # One request has no answer on the page.
            if shown.startswith("{"):
                assert form(answer) == form(json.loads(shown)), command


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_commands_of_every_day(tmp_path):
    page = (DOCS / "how-to/every-day.md").read_text(encoding="utf-8")
    [settings] = [block for kind, block in _BLOCK.findall(page) if kind == "yaml"]
    workspace = Workspace(tmp_path / "workspace", {})
    # The settings of the page are those of --config.
    workspace.config.unlink()
    (workspace.folder / "daily.yaml").write_text(settings)
    lines = (CHECKOUT / "sample_data" / "reviews.ft.txt").read_text().splitlines()
    # More than on the page, so that a model of two of these days is good enough.
    days = [lines[2000 * number : 2000 * number + 2000] for number in range(4)]

    def export(number):
        folder = workspace.folder / "exports" / f"2026-11-0{number}"
        folder.mkdir(parents=True)
        (folder / "reviews.txt").write_text("\n".join(days[number - 1]) + "\n")

    for number in (1, 2, 3):
        export(number)
    newest, passed = (
        block.strip()
        for block in blocks("how-to/every-day.md")
        if block.startswith("amazon-reviews run")
    )
    printed = run(workspace, newest)
    assert "lines     6,000 read: " in printed and ", 2,000 test, 0 rejected" in printed
    assert "read as   spans 2026-11-01 to 2026-11-03, of which 2026-11-03 is the test" in printed
    late = run(workspace, f"{passed} 2>&1 || test $? = 2")
    assert "\nfailed: data.span: span 2026-11-04 of " in late
    assert " is not there yet; there are 2026-11-01 to 2026-11-03\n" in late
    assert "problem 1" not in late
    export(4)
    assert "read as   spans 2026-11-02 to 2026-11-04, " in run(workspace, passed)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_each_strategy_of_the_guide_and_a_cluster_by_hand(tmp_path):
    workspace = Workspace(tmp_path / "workspace", LITTLE)
    page = blocks("how-to/choose-a-strategy.md")
    [strategies] = [block for block in page if "PIPELINE_SET=" in block]
    for command in strategies.splitlines():
        assert "\npushed to " in run(workspace, command), command
    jobs = sorted(workspace.root.rglob("job.json"), key=os.path.getmtime)
    assert len(jobs) == 3
    job = json.loads(jobs[0].read_text())
    again = tmp_path / "again"
    again.mkdir()
    for key in ("serving_model_dir", "model_run_dir", "checkpoint_dir"):
        assert key in job
        job[key] = str(again / key)
    (again / "job.json").write_text(json.dumps(job))
    [by_hand] = [block for block in page if "trainer_module.task" in block]
    run(workspace, by_hand.replace("/tmp/again", str(again)))
    assert (again / "serving_model_dir" / "saved_model.pb").exists()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_the_run_of_the_guide_to_flink(flink_jars, tmp_path):
    workspace = Workspace(tmp_path / "workspace", {})
    settings = {**LITTLE, "paths": {"root": str(workspace.root)}}
    few = " ".join(
        f"--set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in settings.items()
    )
    [block] = [block for block in blocks("how-to/flink.md") if "make flink\n" in block]
    command = block.replace("make flink\n", f"make --silent -C {CHECKOUT} flink\n")
    command = command.replace("run --config flink", f"run --config flink {few}")
    assert "\npushed to " in run(workspace, command)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_settings_of_the_guide_to_vertex_compile(tmp_path):
    text = (DOCS / "how-to/vertex.md").read_text(encoding="utf-8")
    settings = [block for kind, block in _BLOCK.findall(text) if kind == "yaml"]
    assert len(settings) == 2
    workspace = Workspace(tmp_path / "workspace", {})
    workspace.config.unlink()
    both = {**yaml.safe_load(settings[0]), "push": yaml.safe_load(settings[1])["push"]}
    both["vertex"] |= yaml.safe_load(settings[1])["vertex"]
    # Names in capitals are those of the reader.
    names = {"BUCKET": "a-bucket", "HOST/PROJECT": "example.com/a-project", "PROJECT": "a-project"}
    filled = yaml.safe_dump(both)
    for name, value in names.items():
        filled = filled.replace(name, value)
    (workspace.folder / "mine.yaml").write_text(filled)
    workspace.config.write_text(filled)
    [block] = [block for block in blocks("how-to/vertex.md") if "amazon-reviews compile" in block]
    [command] = [line for line in block.splitlines() if "compile" in line]
    run(workspace, command)
    job = json.loads((workspace.folder / "amazon_reviews.json").read_text())
    assert "pipelineSpec" in job
