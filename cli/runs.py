"""`amazon-reviews report` and `amazon-reviews runs`: the runs on this machine."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import ConfigOption, SetOption

if TYPE_CHECKING:
    from components.run_report.history import Run

app = typer.Typer()
_runs = typer.Typer(name="runs")
app.add_typer(_runs)

_PAGE = ("<!doctype html>", "a page in HTML")
"""The beginning and the kind of the files that an output may replace."""
_OF_CLASSES = ("classes", "macro F1")
"""The columns of a table with a run of more than two classes."""
_OF_SPANS = ("span", "alarm")
"""The columns of a table with a run whose input has spans."""


@app.command(epilog="Example: amazon-reviews report --output report.html")
def report(
    run: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the run, or its beginning \\[default: the newest]."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write \\[default: report-ID.html]."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the report of a run, also of one that failed, as one HTML page.

    Exit code 2: there is no such run, or FILE is there and is not a page in HTML.
    """
    from cli.console import print_line, silent_stderr
    from core.files import check_replaced, write_output
    from core.metadata import open_store
    from pipeline.config import changed_settings, load_config
    from platforms.local.runs import find_run

    settings = load_config(config, overrides or ())
    found = find_run(settings, run)
    file = output or Path(f"report-{found.id.replace(':', '')}.html")
    check_replaced(file, *_PAGE)
    with silent_stderr():
        from components.run_report.content import collect
        from components.run_report.earlier import read_earlier
        from components.run_report.page import render

        changed = changed_settings(json.dumps(found.settings))
        earlier = read_earlier(open_store(settings.paths.metadata), found)
        shown = dataclasses.replace(found, name=settings.name, changed=changed)
        page = render(collect(shown, earlier=earlier))
    write_output(file, page)
    print_line(str(file))


@_runs.callback(invoke_without_command=True, epilog="Example: amazon-reviews runs --html runs.html")
def runs(
    context: typer.Context,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array of objects instead of a table.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with a picture of the runs."),
    ] = None,
    send: Annotated[
        bool, typer.Option("--send", help="Send the runs that MLflow did not receive, and exit.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """List the runs in paths.metadata, the newest first.

    Exit code 2: there is no run, or FILE is there and is not a page in HTML. 1: with --send, a run
    could not be sent.
    """  # noqa: DOC501
    from core.errors import ConfigError

    outputs = {"--json": as_json, "--html": bool(html), "--send": send}
    if context.invoked_subcommand:
        # Typer does not pass the options before `compare` on, so they would have no effect.
        given = {**outputs, "--config": bool(config), "--set": bool(overrides)}
        if any(given.values()):
            early = ", ".join(option for option, is_given in given.items() if is_given)
            raise ConfigError(
                f"{early}: compare takes only --config and --set, and they follow it: "
                "`amazon-reviews runs compare FIRST SECOND --config FILE`"
            )
        return
    if sum(outputs.values()) > 1:
        several = " and ".join(option for option, is_given in outputs.items() if is_given)
        raise ConfigError(f"{several} exclude each other; set one of them")
    from rich.table import Table

    from cli.console import json_text, print_line, print_table, silent_stderr
    from pipeline.config import load_config
    from platforms.local.runs import find_runs

    settings = load_config(config, overrides or ())
    if send:
        with silent_stderr():
            from platforms.served_model import send_unsent

            for line in send_unsent(settings):
                print_line(line)
        return
    found = find_runs(settings)
    columns = _columns(found)
    if html:
        from core.files import check_replaced, write_output

        check_replaced(html, *_PAGE, option="--html")
        with silent_stderr():
            from components.run_report.history_page import render

            page = render(settings.name, found, [_row(run, columns) for run in found])
        write_output(html, page, option="--html")
        print_line(str(html))
        return
    if as_json:
        print(json_text([_values(run) for run in found], indent=1))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for run in found:
        table.add_row(*_row(run, columns).values())
    print_table(table)


@_runs.command(epilog="Example: amazon-reviews runs compare 2026-11-25T10:00 2026-11-25T11:00")
def compare(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="Id of a run, or its beginning.")],
    second: Annotated[
        str, typer.Argument(metavar="SECOND", help="Id of another run, or its beginning.")
    ],
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show what changed from one run to another: results, settings, data, code and answers.

    Exit code 2: there is no such run.
    """
    from cli.changes import show_changes
    from cli.console import out, silent_stderr
    from pipeline.config import load_config
    from platforms.local.runs import find_run

    settings = load_config(config, overrides or ())
    pair = find_run(settings, first), find_run(settings, second)
    with silent_stderr():
        from components.run_report.changes import compare_runs

        changes = compare_runs(*pair)
    show_changes(out, changes)


def _columns(found: Sequence[Run]) -> list[str]:
    """Return the columns of the table; some require a run with more than two classes or spans."""
    outcomes = [run.outcome for run in found if run.outcome]
    hidden: tuple[str, ...] = ()
    if not any(outcome.class_count > 2 for outcome in outcomes):
        hidden += _OF_CLASSES
    if not any(run.span for run in found):
        hidden += _OF_SPANS
    return [name for name in _values(found[0]) if name not in hidden]


def _values(run: Run) -> dict[str, Any]:
    """Return column of the table -> value for a run, in the order of the table; None: unknown."""
    from components.run_report.history import recorded_decision
    from platforms.local.runs import setting

    outcome = run.outcome
    return {
        "run": run.id,
        "started": time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)),
        "data": (setting(run, "data.input_base") or "sample") if run.settings else None,
        "span": run.span or None,
        "model": setting(run, "training.model"),
        "strategy": (outcome.strategy if outcome else "") or setting(run, "training.strategy"),
        "seconds": round(run.seconds, 1),
        "classes": outcome.class_count if outcome else None,
        "accuracy": outcome.accuracy if outcome else None,
        "macro F1": outcome.metrics.get("macro F1") if outcome else None,
        "alarm": (outcome.severity or None) if outcome else None,
        "result": recorded_decision(run).result,
    }


def _row(run: Run, columns: Sequence[str]) -> dict[str, str]:
    """Return column of the table -> text for a run, of these columns."""
    formats = {"seconds": "{:.0f}", "accuracy": "{:.4f}", "macro F1": "{:.4f}"}
    return {
        name: "–" if value is None else formats.get(name, "{}").format(value)
        for name, value in _values(run).items()
        if name in columns
    }
