"""The parts of the first run: the log of an installation, and the sums of the table."""

import pytest

from benchmarks.first_run import Line, build_seconds, install_parts, table

LOG = """\
2 $ /usr/bin/python3 -m venv /clone/.cache/uv
5 $ /clone/.cache/uv/bin/python -m pip install --require-hashes -r /clone/requirements/uv.txt
7 Collecting uv==0.13.9
9 $ /clone/.cache/uv/bin/uv venv --clear --seed --python /usr/bin/python3 /clone/.venv
10 $ /clone/.cache/uv/bin/uv pip install --require-hashes -r /clone/requirements/tfx.txt
13 Resolved 330 packages in 3s
14 Downloading tensorflow (560.0MiB)
15    Building pyfarmhash==0.4.0
30  Downloaded tensorflow
34       Built pyfarmhash==0.4.0
35 Prepared 330 packages in 22s
37 Installed 330 packages in 2s
56 Bytecode compiled 24663 files in 19s
57 $ /clone/.cache/uv/bin/uv pip install --python /clone/.venv/bin/python --no-deps -e /clone
58    Building amazon-reviews @ file:///clone
59 Prepared 1 package in 1s
"""
LINES = [
    Line(float(moment), text)
    for moment, _, text in (line.partition(" ") for line in LOG.splitlines())
]


def test_the_log_of_an_installation_has_all_parts():
    parts = install_parts(LINES, 1.0, 60.0)
    seconds: dict[str, float] = {}
    for name, start, end in parts:
        seconds[name] = seconds.get(name, 0.0) + end - start
    assert seconds == {
        "start, choose an interpreter": 1,
        "install uv": 7,
        "create .venv": 1,
        "resolve": 3,
        "download": 17,
        "build, after the downloads": 5,
        "link the files": 2,
        "between the commands": 1,
        "install this package": 3,
        "compile bytecode": 19,
    }
    assert sum(seconds.values()) == pytest.approx(59)


def test_a_build_lasts_from_its_first_line_to_its_last():
    assert build_seconds(LINES) == {"pyfarmhash==0.4.0": 19}


def test_our_part_is_summed():
    figures = [
        {"part": "download", "whose": "network", "s": 30.0, "cpu": 2.0},
        {"part": "compile bytecode", "whose": "ours", "s": 15.0, "cpu": 28.0},
        {"part": "run: components", "whose": "ours", "s": 15.0, "cpu": 20.0},
    ]
    rows = list(zip(*[column.cells for column in table(figures).columns], strict=True))
    assert rows[-2] == ("all", "", "60.0", "50.0", "100%")
    assert rows[-1] == ("all that is ours", "ours", "30.0", "48.0", "50%")
