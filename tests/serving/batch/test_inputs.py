"""The words of `predict --input`: only the part that no folder has as its name is a pattern."""

import pytest

from serving.batch.inputs import find_inputs


@pytest.mark.parametrize("word", ["*.txt", "../x[1]/*.txt", "{folder}/n*"])
def test_the_working_directory_and_existing_folders_are_no_patterns(tmp_path, monkeypatch, word):
    folder = tmp_path / "x[1]"
    for place, name in ((folder, "new.txt"), (tmp_path / "x1", "neighbour.txt")):
        place.mkdir()
        (place / name).write_text("good")
    monkeypatch.chdir(folder)
    [found] = find_inputs([word.format(folder=folder)])
    assert found.path == f"{folder}/new.txt"
