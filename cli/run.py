"""`amazon-reviews run`, and the lines that it prints after the end of a run."""

from __future__ import annotations

import math
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.options import ConfigOption, SetOption, settings_options
from core import exit_codes
from core.storage import is_url
from pipeline.nodes import EXAMPLE_GEN

if TYPE_CHECKING:
    from rich.console import Console

    from cli.run_state import RunState
    from components.run_report.outcome import Outcome
    from core.events import Failed
    from pipeline.config import PipelineConfig

app = typer.Typer()

_SHOWN = ("macro F1", "mean absolute error")
"""The metrics beside the accuracy of a model with more than two classes."""
_LABEL_WIDTH, _SHORTEST_CURVE = 10, 8


@app.command(epilog="Example: amazon-reviews run --config mine.yaml --set training.epochs=3")
def run(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Run the pipeline on this machine and show its progress.

    If nothing has changed since the last run, the command shows the result of that run again.

    Exit code 0: a model was pushed, or blessed under push.destination: none. 2: settings or input
    are wrong, or another run uses paths.root. 3: the model was not blessed or failed the serving
    check. 130: Ctrl-C or SIGTERM. 1: anything else.
    """  # noqa: DOC501
    from cli import monitor
    from cli.console import out
    from cli.run_state import RunState
    from pipeline.config import environment_settings, load_config, log_folder
    from platforms.local import folders, unchanged

    settings = load_config(config, overrides or ())
    lock = folders.prepare(settings)
    options = settings_options(config, overrides)
    last = unchanged.find_unchanged(settings)
    if last:
        text = f"unchanged since the run {last.id}"
        _show_start(out, settings.name, text, environment_settings(config))
        state = RunState(outcome=last.outcome)
        raise typer.Exit(show(out, settings, state, options=options))
    log = Path(log_folder(settings)) / time.strftime("%Y%m%d-%H%M%S.log")
    _show_start(out, settings.name, f"log: {log}", environment_settings(config))
    state = monitor.run_pipeline(out, log, settings, lock)
    raise typer.Exit(show(out, settings, state, log, options))


def _show_start(console: Console, name: str, text: str, environment: str) -> None:
    """Print the first lines of a run.

    A variable that an earlier experiment has left would otherwise change a model without notice.

    Args:
      console: the output.
      name: the name of the pipeline.
      text: what follows the name.
      environment: the settings of environment variables; empty if there are none.
    """
    from cli.console import print_parts

    print_parts(console, (name, "bold"), f"  {text}")
    if environment:
        print_parts(console, f"settings of the environment: {environment}")


def show(
    console: Console,
    config: PipelineConfig,
    state: RunState,
    log: Path | None = None,
    options: str = "",
) -> int:
    """Print the result of a run; return the exit code of the command.

    Args:
      console: the output. The lines of a failure are on standard error instead.
      config: the settings of the run.
      state: the state of the run after its end.
      log: the file with the log lines; None if no process was started.
      options: the options that select the settings, for the commands that are recommended.

    Raises:
      OSError: the folder of the runs that MLflow did not receive cannot be listed.
    """
    from cli.console import print_parts

    code = _show_result(console, config, state, log, options)
    if unsent := _unsent(config):
        runs = "1 run was" if unsent == 1 else f"{unsent} runs were"
        sends = f"amazon-reviews runs --send{options} sends {'it' if unsent == 1 else 'them'}"
        print_parts(
            console, ("MLflow", "red"), f": {runs} not sent to {config.tracking.mlflow}; {sends}"
        )
    return code


def _show_result(
    console: Console, config: PipelineConfig, state: RunState, log: Path | None, options: str
) -> int:
    from cli.console import print_parts

    if state.failure:
        # The input is checked before a component starts, and again by ReviewExampleGen.
        if state.failure.wrong_input and state.failure.component in (None, EXAMPLE_GEN):
            _show_data_problems(config, options)
        return _show_failure(state.failure, state.interrupted, log)
    assert state.outcome is not None
    outcome = state.outcome
    _sentence(console, "lines", outcome.lines.sentence())
    for way in outcome.reading:
        _sentence(console, "read as", way)
    for line in outcome.class_lines:
        _sentence(console, "classes", line)
    for line in outcome.unused:
        _sentence(console, "unused", line, "yellow")
    if curve := _curve(console, outcome):
        _sentence(console, "curve", curve)
    _show_few_texts(console, config, outcome, options)
    if outcome.skipped_warm_start:
        text = f"no warm start, the weights are new: {outcome.skipped_warm_start}"
        _sentence(console, "training", text, "yellow")
    _sentence(console, "accuracy", _accuracy(outcome))
    _sentence(console, "compared", _comparison(config, outcome))
    if outcome.drift:
        style = "yellow" if outcome.severity in ("low", "high") else ""
        _sentence(console, "new span", outcome.drift, style)
    if outcome.not_tested:
        print_parts(console, ("not tested", "yellow"), f": {outcome.not_tested}")
    print_parts(console, f"report    {outcome.report}")
    verdict = outcome.verdict
    _sentence(console, "verdict", verdict.sentence, "green" if verdict.is_good else "red")
    if outcome.not_checked:
        print_parts(console, f"serving check: {outcome.not_checked}")
    if not verdict.is_good:
        if outcome.served_as:
            text = f"version {outcome.served_as}, which an earlier run pushed, is this model"
            back = f"amazon-reviews rollback{options} serves the model before it"
            print_parts(console, ("still served", "red"), f": {text}; {back}")
        return exit_codes.NOT_BLESSED
    if not config.push.is_enabled:
        print_parts(console, "not pushed (push.destination: none)")
        return exit_codes.PUSHED
    print_parts(console, f"pushed to {outcome.pushed_to}")
    text = "TEXT" if config.data.labels else '"Battery died in a week"'
    print_parts(console, f"next: amazon-reviews predict{options} {text}")
    return exit_codes.PUSHED


def _curve(console: Console, outcome: Outcome) -> str:
    """Return the loss of the training as a line of characters; empty if it is unknown.

    Most of the decrease is at the beginning, so the heights are those of the logarithm.
    """
    from cli.sparkline import sparkline

    losses = outcome.loss_curve
    if not losses:
        return ""
    steps = "1 step" if outcome.steps == 1 else f"{outcome.steps:,} steps"
    first, last = f"loss {losses[0]:.4f}", f"{losses[-1]:.4f} in {steps}"
    room = console.width - _LABEL_WIDTH - len(f"{first}  {last}")
    heights = [math.log(loss) for loss in losses] if min(losses) > 0 else losses
    drawn = sparkline(heights, max(_SHORTEST_CURVE, room), console.options.ascii_only)
    return f"{first} {drawn} {last}"


def _accuracy(outcome: Outcome) -> str:
    """Return the accuracy with its interval, the next figures and the constant answer."""
    interval = ""
    if outcome.accuracy_interval:
        low, high = outcome.accuracy_interval
        interval = f" (95 %: {low:.4f} to {high:.4f})"
    shown = {title: outcome.metrics[title] for title in _SHOWN if title in outcome.metrics}
    figures = "".join(f"   {title} {value:.4f}" for title, value in shown.items())
    figures = figures or f"   AUC {outcome.auc:.4f}"
    where = f"(test split; {outcome.constant_answer})"
    return f"{outcome.accuracy:.4f}{interval}{figures} {where}"


def _comparison(config: PipelineConfig, outcome: Outcome) -> str:
    """Return the difference to the served model, or the reason why there is none."""
    from components.destination import make_destination
    from pipeline.destinations import destination_json

    if outcome.other_classes:
        return f"with no model: {outcome.other_classes}"
    if not outcome.baseline:
        destination = make_destination(destination_json(config))
        return f"with no model: {destination.no_baseline()}"
    change = outcome.accuracy_change
    if change == 0:
        return f"the accuracy is that of {outcome.baseline}"
    direction = "below" if change < 0 else "above"
    served = outcome.accuracy - change
    return f"accuracy {abs(change):.4f} {direction} {outcome.baseline}, which has {served:.4f}"


def _unsent(config: PipelineConfig) -> int:
    """Return the number of runs that MLflow did not receive; 0 if no run is sent there."""
    from core.files import list_files
    from pipeline.config import unsent_folder

    if not config.tracking.mlflow:
        return 0
    folder = unsent_folder(config)
    if is_url(folder):  # TensorFlow lists the folder, and its import takes seconds.
        return len(list_files(folder, "*.json"))
    return len(list(Path(folder).glob("*.json")))


def _show_data_problems(config: PipelineConfig, options: str) -> None:
    """Print to standard error everything that the user's data lack.

    Nothing is printed for the sample, and for an input without files, such as a late span: the
    error of the run is the only problem.
    """
    from cli.console import error_console
    from cli.data_check import show_after_failure
    from pipeline.data_check.check import check_data

    if config.data.input_base is None:
        return
    try:
        check = check_data(config)
    except Exception:  # no fault of this check may hide the error of the run
        return
    if check.number_of_files:
        show_after_failure(error_console(), check, options)


def _show_few_texts(
    console: Console, config: PipelineConfig, outcome: Outcome, options: str
) -> None:
    """Print the command with a training for few texts, if the user's data have few texts.

    Args:
      console: the output.
      config: the settings of the run.
      outcome: the outcome of the run.
      options: the options of the command, see `settings_options`.
    """
    from cli.console import print_parts
    from pipeline.data_check.few_texts import few_texts
    from pipeline.data_check.settings_file import as_options
    from pipeline.inputs import read_options

    if config.data.input_base is None:
        return
    task, train_texts = read_options(config).task, outcome.lines.examples["train"]
    proposal = few_texts(config, task, outcome.class_count, train_texts)
    if proposal:
        _sentence(console, "training", proposal.note.message, "yellow")
        better = as_options(proposal.note.settings)
        # A command is one line, also in a terminal, so that it can be copied.
        print_parts(console, f"a training for few texts: amazon-reviews run{options} {better}")


def _show_failure(failure: Failed, interrupted: bool, log: Path | None) -> int:
    """Print the error of a run to standard error; return the exit code of the command."""
    from cli.console import error_console, print_parts

    console = error_console()
    where = f": {failure.component}" if failure.component else ""
    if interrupted:
        print_parts(console, ("interrupted", "red"), f"{where}; run again to continue")
    else:
        print_parts(console, ("failed", "red"), f"{where}: {failure.error}")
    print_parts(console, f"log: {log}")
    if interrupted:
        return exit_codes.INTERRUPTED
    return exit_codes.BAD_INPUT if failure.wrong_input else exit_codes.FAILED


def _sentence(console: Console, label: str, text: str, style: str = "") -> None:
    """Print a label and a text, which a terminal breaks between words.

    Args:
      console: the output. A pipe or a file gets one line.
      label: the label, in the first ten columns.
      text: the text.
      style: the style of the label.
    """
    from rich.text import Text

    first = f"{label:<{_LABEL_WIDTH}}{text}"
    lines = [first]
    if console.is_terminal:
        indent = " " * _LABEL_WIDTH
        width = max(console.width, 2 * _LABEL_WIDTH)
        lines = textwrap.wrap(
            first,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    printed = Text("\n".join(lines))
    printed.stylize(style, 0, len(label))
    console.print(printed, soft_wrap=True)
