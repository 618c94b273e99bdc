"""Training data of Rasa is named, with a command that writes its intents in a format of a run."""

import subprocess
import sys

import pytest

from core.errors import InputError
from preprocessing.reading.files import NoFilesError, find_files
from preprocessing.reading.records import ReadOptions
from tests.preprocessing.reading.review_files import detect_format, got, read, write

YAML = """version: "3.1"

nlu:
- intent: greet
  examples: |
    - hello
    - hi [Bob](name)!
- lookup: city
  examples: |
    - Lima
- intent: faq/ask_price
  examples: |
    - what is the price in [Lima]{"entity": "city", "role": "to"}
    - price, please
"""
MARKDOWN = """<!-- our bot -->
## intent:greet
- hello
- hi [Bob](name)!

## lookup:city
- Lima

## intent:faq/ask_price
- what is the price in [Lima](city)
* price, please
"""
EXPECTED = [
    ("greet", "hello"),
    ("greet", "hi Bob!"),
    ("faq/ask_price", "what is the price in Lima"),
    ("faq/ask_price", "price, please"),
]


@pytest.mark.parametrize(("name", "content"), [("nlu.yml", YAML), ("nlu.txt", MARKDOWN)])
def test_the_command_for_training_data_of_rasa_writes_its_intents(tmp_path, name, content):
    path = write(tmp_path, name, content)
    options = ReadOptions(task="each")
    with pytest.raises(InputError, match="is training data of Rasa in") as error:
        detect_format(path, options)
    command = str(error.value).split("`")[1].replace("NEW_FILE", "new").replace("FILE", name)
    command = command.replace("python3", sys.executable)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    names = ("faq/ask_price", "greet")
    label_map = {label: index for index, label in enumerate(names)}
    options = ReadOptions(task="map", classes=names, label_map=label_map)
    found = [(names[label], text) for label, text in got(read(str(tmp_path / "new"), options))]
    assert found == EXPECTED


def test_files_that_only_their_names_leave_out_are_named(tmp_path):
    write(tmp_path, "nlu.md", MARKDOWN)
    with pytest.raises(NoFilesError, match=r"; to read nlu\.md, rename it$"):
        find_files(str(tmp_path), "**")
