"""A run every day: three days of which each run reads two, against runs from nothing."""

import json
import random
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.e2e.conftest import LITTLE
from tests.e2e.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

GOOD, BAD = ("great", "love", "perfect"), ("awful", "broken", "refund")


def write_day(folder, day, count=300):
    chance = random.Random(day)
    lines = []
    for number in range(count):
        label = 1 + number % 2
        words = [*chance.choices((BAD, GOOD)[label - 1], k=3), f"day{day}", f"number{number}"]
        lines.append(f"__label__{label} {' '.join(words)}\n")
    path = folder / f"2026-02-{day:02d}"
    path.mkdir(parents=True)
    (path / "reviews.txt").write_text("".join(lines))


def workspace(tmp_path, name, **settings):
    data = {"input_base": str(tmp_path / "exports" / "{YYYY}-{MM}-{DD}"), "window": 2}
    return Workspace(tmp_path / name, {**LITTLE, "data": data, **settings})


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def weights(workspace):
    """Return name -> value of the variables of the newest model."""
    folder = workspace.artifact_uri("Model") / "Format-Serving" / "variables"
    reader = tf.train.load_checkpoint(str(folder / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return {name: reader.get_tensor(name) for name in names}


def test_a_window_that_moves_trains_the_model_of_one_from_nothing(tmp_path):
    exports = tmp_path / "exports"
    for day in (26, 27):
        write_day(exports, day)
    not_pushed = {"push": {"destination": "none"}}
    every = workspace(tmp_path, "every", **not_pushed)
    first = every.run()
    assert first.returncode == 0, first.stdout + first.stderr
    late = every.run("data.span=2026-02-28")
    assert late.returncode == 2
    [line] = [line for line in late.stderr.splitlines() if line.startswith("failed")]
    assert re.search(
        "data.span: span 2026-02-28 .* is not there yet; there are 2026-02-26 to", line
    )
    write_day(exports, 28)
    moved = every.run()
    assert moved.returncode == 0, moved.stdout + moved.stderr
    states = every.states(moved.stdout)
    assert states["ReviewExampleGen"] == states["Trainer"] == "done"
    ways = "spans 2026-02-27 to 2026-02-28, of which 2026-02-28 is the test split"
    assert f"read as   {ways}" in moved.stdout, moved.stdout
    log = "".join(path.read_text() for path in (every.root / "logs").iterdir())
    assert "Spans: 1 are read, 1 are reused" in log
    # A folder outside of the window changes nothing.
    write_day(exports, 20)
    again = every.run()
    assert again.returncode == 0
    assert "ReviewExampleGen" not in every.states(again.stdout), again.stdout
    nothing = workspace(tmp_path, "nothing", **not_pushed)
    done = nothing.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert files(every.artifact_uri("components.RejectedLines")) == files(
        nothing.artifact_uri("components.RejectedLines")
    )
    examples = [each.root / "ReviewExampleGen" / "examples" for each in (every, nothing)]
    newest = [max(folder.iterdir(), key=lambda path: int(path.name)) for folder in examples]
    assert files(newest[0]) == files(newest[1])
    found, expected = weights(every), weights(nothing)
    assert found.keys() == expected.keys() and len(found) > 1
    assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_a_warm_start_continues_from_the_model_of_the_day_before(tmp_path):
    exports = tmp_path / "exports"
    for day in (26, 27):
        write_day(exports, day)
    daily = workspace(tmp_path, "daily")
    assert "\npushed to " in daily.run().stdout
    first = weights(daily)
    write_day(exports, 28)
    # Without a learning rate the training keeps the weights that it begins with.
    continued = daily.run("training.warm_start=true,training.learning_rate=1e-9")
    assert "read as   spans 2026-02-27 to 2026-02-28, " in continued.stdout, continued.stderr
    second = weights(daily)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, atol=1e-5, err_msg=name)
    # Its words `day28` are new.
    assert "\nnew span  alarm of severity low (words): " in continued.stdout
    page = daily.report(continued.stdout)
    assert "Does the served model still fit?" in page and "<b>day28</b>" in page
    [newest, oldest] = json.loads(daily.command("runs", "--json").stdout)
    assert (newest["span"], newest["alarm"], oldest["alarm"]) == ("2026-02-28", "low", None)
