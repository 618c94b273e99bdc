"""The HTML page of a report."""

from __future__ import annotations

import functools
import time

import jinja2

from components.evaluator import files
from components.evaluator.counts import Counts
from components.evaluator.metrics import ACCURACY, constant_answer, key_figures, reviews_of_class
from components.run_report import input_data, mistakes, summary, words
from components.run_report.classes import class_rows, shown_confusions
from components.run_report.content import Content
from components.run_report.pictures import draw, own_dot, run_dots
from components.run_report.verdict import judge
from core.settings import flat_settings


@functools.cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates of this package, which compiles each of them once."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("components.run_report", "templates"),
        # Reviews are untrusted, so markup in them is escaped.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {
        "words": words,
        "highlighted": mistakes.highlighted,
        "answer": mistakes.answer,
        "golden_answer": mistakes.golden_answer,
        "ACCURACY": ACCURACY,
        "constant_answer": constant_answer,
        "line_columns": input_data.columns,
    }
    return found


def render(content: Content) -> str:
    """Return a report as one HTML document that references no other file."""
    run, results = content.run, content.evaluation
    verdict = judge(summary.decision(content))
    dots = run_dots(content.recent)
    if results and results.candidate.examples:
        is_good = bool(verdict.is_good)
        severity = content.comparison.severity if content.comparison else ""
        dots.append(own_dot(results, is_good, run.span, severity))
    labels = content.labels
    template = environment().get_template("report.html.j2")
    return template.render(
        **content._asdict(),
        comparison=content.comparison,
        verdict=verdict,
        tiles=summary.tiles(content),
        started=run.started and time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run.started)),
        settings=flat_settings(run.settings),
        own=results.candidate if results else None,
        metrics=key_figures(results.labels) if results else [],
        slices=slices(results) if results else [],
        pictures=draw(content.training, results, dots),
        groups=mistakes.grouped(content.mistakes, results.labels) if results else [],
        noun=labels.noun if labels else "text",
        of_second_class=reviews_of_class(results.labels, 1) if results else "",
        class_rows=class_rows(results.candidate, results.labels) if results else [],
        confusions=shown_confusions(results, content.confusion_texts) if results else [],
    )


def slices(results: files.Results) -> list[tuple[str, Counts]]:
    """Return the name of each slice, and the counts of the candidate on it, in a sorted list."""
    names = [each for each in results.slices if each != files.WHOLE]
    names.sort(key=lambda each: (each[0], words.first_number(each[1])))
    return [(words.slice_name(*name), results.slices[name][files.CANDIDATE]) for name in names]
