"""What a person is told when a run has ended."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from pipeline import exit_codes
from pipeline.config import PipelineConfig
from pipeline.monitor import Watched


def show(console: Console, config: PipelineConfig, watched: Watched, log: Path) -> int:
    """Prints the end of a run; returns the exit code of the command."""
    if watched.failure:
        return _show_failure(console, watched.failure, log)
    assert watched.outcome is not None
    outcome = watched.outcome
    console.print(f"reviews   {_account(outcome['lines'])}", soft_wrap=True)
    console.print(f"accuracy  {outcome['accuracy']:.4f}   AUC {outcome['auc']:.4f} (test split)")
    if not outcome["blessed"]:
        console.print(f"[red]not blessed[/]: {'; '.join(outcome['reasons'])}", soft_wrap=True)
        return exit_codes.NOT_BLESSED
    console.print("[green]blessed[/]")
    if config.push.destination == "none":
        console.print("not pushed, as push.destination: none says")
        return exit_codes.PUSHED
    console.print(f"pushed to {outcome['pushed_to']}", soft_wrap=True)
    console.print('next: amazon-reviews predict "Battery died in a week"')
    return exit_codes.PUSHED


def _show_failure(console: Console, failure: dict[str, object], log: Path) -> int:
    where = f"{failure['component']}: " if failure["component"] else ""
    console.print(f"[red]failed[/]: {where}", end="")
    console.print(str(failure["error"]), markup=False, soft_wrap=True)
    console.print(f"log: {log}", soft_wrap=True)
    return exit_codes.BAD_INPUT if failure["input"] else exit_codes.FAILED


def _account(lines: dict[str, int]) -> str:
    """`3,000 read: 2,400 train, …, 12 rejected (bad_label 12)`: every line is in it."""
    lines = dict(lines)
    lost_bytes = lines.pop("lost_bytes", 0)
    parts = [
        f"{lines.get(f'examples_{split}', 0):,} {split}" for split in ("train", "eval", "test")
    ]
    if lines.get("neutral"):
        parts.append(f"{lines['neutral']:,} neutral left out")
    if lines.get("over_max_examples"):
        parts.append(f"{lines['over_max_examples']:,} over data.max_examples")
    rejected = {
        name.removeprefix("rejected_"): count
        for name, count in lines.items()
        if name.startswith("rejected_") and count
    }
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in rejected.items())
    parts.append(f"{sum(rejected.values()):,} rejected" + (f" ({reasons})" if reasons else ""))
    if lost_bytes:
        parts.append(f"{lost_bytes:,} bytes of damaged files lost")
    return f"{sum(lines.values()):,} read: " + ", ".join(parts)
