"""The settings that `data check` proposes for classes with too few lines."""

import yaml

from components.review_example_gen.splits import Splitting, assign_splits, text_keys
from tests.pipeline.test_data_check import look, look_again, write


def rows(label, number, split=None, group="all"):
    """Return lines of a label, whose texts are in one split of a run if it is given."""
    texts = [f"a text of {label} with number {n}" for n in range(1000)]
    splits = assign_splits(
        text_keys([text.encode() for text in texts]), group, Splitting(frozenset())
    )
    found = [text for text, of in zip(texts, splits, strict=True) if split in (None, str(of))]
    return "".join(f"{label},{text}\n" for text in found[:number])


def test_a_class_without_a_line_for_training_is_left_out_by_a_setting(tmp_path):
    data = rows("a", 50) + rows("b", 50) + rows("unlucky", 3, "test") + rows("rare", 1)
    for content in (data, data.replace(rows("rare", 1), "")):
        folder = tmp_path / str(len(content))
        folder.mkdir()
        check = look(write(folder, a__csv=f"label,text\n{content}"), "data.labels=each")
        assert check.is_settled
        labels = yaml.safe_load(check.settings)["data"]["labels"]
        assert labels["unlucky"] is None and labels.get("rare") is None
        assert [label for label, name in labels.items() if name] == ["a", "b"]
        assert look_again(folder, check).starts


def test_a_rare_class_of_a_mapping_is_left_out_by_a_setting(tmp_path):
    """Also of a mapping that settles another problem: a label that only the test file has."""
    train = rows("a", 50) + rows("b", 50) + rows("rare", 1)
    files = {
        "train__csv": f"label,text\n{train}",
        "test__csv": "label,text\na,one more\nb,and another\nnew,a new one\n",
    }
    splits = "data.splits={train: train.csv, test: test.csv}"
    for labels in ("each", "{a: good, b: bad, rare: odd, new: good}"):
        folder = tmp_path / labels[:1]
        folder.mkdir()
        check = look(write(folder, **files), splits, f"data.labels={labels}")
        assert check.is_settled
        assert "too few lines of" in check.problems[-1].message
        found = yaml.safe_load(check.settings)["data"]["labels"]
        assert found["rare"] is None and found["a"] and found["b"]
        assert look_again(folder, check).starts


def test_numbers_of_topics_may_have_no_order(tmp_path):
    data = "".join(rows(str(number), 40) for number in range(3))
    [problem] = look(write(tmp_path, a__csv=f"label,text\n{data}")).problems
    labels = [yaml.safe_load(choice.settings)["data"]["labels"] for choice in problem.choices]
    assert labels == ["stars", "each"]
    assert "without an order" in problem.choices[1].meaning
