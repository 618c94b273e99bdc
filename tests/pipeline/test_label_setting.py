"""The setting `data.labels`: from YAML to classes, and the one line of each mistake."""

import pytest

from core.errors import ConfigError
from pipeline.config import load_config, load_recorded_settings, recorded_settings
from pipeline.inputs import read_options
from preprocessing.reading.labels import setting_key


def options(labels):
    return read_options(load_config(overrides=[f"data.labels={labels}"], environ={}))


@pytest.mark.parametrize(
    ("labels", "task", "classes", "label_map"),
    [
        ("{1: bad, 2: bad, 3: null, 4: good, 5: good}", "map", "bad good", [0, 0, None, 1, 1]),
        ("{1: bad, 3: so-so, 5: good}", "map", "bad so-so good", [0, 1, 2]),
        # The order is that of the mapping.
        ("{5: good, 3: null, 1: bad}", "map", "good bad", [0, None, 1]),
        ("{1: negative, 5: positive}", "sentiment", "negative positive", [0, 1]),
        ("{5: positive, 1: negative}", "sentiment", "negative positive", [1, 0]),
        ("{1: 0, 2: 0, 3: null, 5: 1}", "sentiment", "negative positive", [0, 0, None, 1]),
        ("{1: 0, 5: positive}", "sentiment", "negative positive", [0, 1]),
        # With another class, these names have no special meaning.
        ("{a: 0, b: 1, c: 2}", "map", "0 1 2", [0, 1, 2]),
        ("{a: positive, b: neutral}", "map", "positive neutral", [0, 1]),
        ("{1: 0.0, 5: 1.0}", "sentiment", "negative positive", [0, 1]),
        ("{a: 1.5, b: ' Größe ', c: 日本語}", "map", "1.5 Größe 日本語", [0, 1, 2]),
        ("{a: Gro\u0308ße, b: Größe, c: x}", "map", "Größe x", [0, 0, 1]),
    ],
)
def test_a_mapping_names_the_classes_in_their_order(labels, task, classes, label_map):
    found = options(labels)
    assert (found.task, list(found.classes)) == (task, classes.split())
    assert list(found.label_map.values()) == label_map


def test_labels_have_the_spelling_of_the_reader():
    found = options("{4.0: a, 'Out of Office': b, yes: c, off: d, ' Gro\u0308ße ': e}")
    words = ["4", "out of office", "true", "yes", "on", "false", "no", "off", "größe"]
    assert list(found.label_map) == words


def test_the_other_tasks_find_their_classes_in_the_files():
    assert [options(task).task for task in ("stars", "each")] == ["stars", "each"]
    assert options("each").classes == ()
    assert options("{}").task == "sentiment"


@pytest.mark.parametrize("labels", ["each", "{a: Bad, b: null, c: x}", "{yes: 1, off: 0}"])
def test_recorded_labels_are_read_again(labels):
    config = load_config(overrides=[f"data.labels={labels}"], environ={})
    again = load_recorded_settings(recorded_settings(config))
    assert read_options(again) == read_options(config)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("Stars", "data.labels: requires stars, each, or a mapping from each label to a class"),
        ("EACH", "good: positive}, not 'EACH'"),
        ("[a, b]", "good: positive}, not ['a', 'b']"),
        ("7", "good: positive}, not 7"),
        ("null", "good: positive}, not None"),
        ("{4: good, '4': bad}", "the label 4 is mapped to two classes; keep one of them"),
        ("{4: good, '4.0': good, 1: bad}", "the label 4 is there twice; keep one of them"),
        ("{Good: a, good: b}", "the label good is mapped to two classes"),
        ("{4: a, 4.0: b}", "the keys '4' and '4.0' are read as one"),
        ("{1: a, true: b}", "the keys '1' and 'true' are read as one"),
        ("{yes: a, on: b}", "the keys 'yes' and 'on' are read as one"),
        ("{yes: a, 'on': b}", "the label on is mapped to two classes"),
        ("{4: [good, great], 1: bad}", 'the class of the label 4 is ["good", "great"]; write one'),
        ("{4: {good: 1}, 1: bad}", "the class of the label 4 is"),
        ("{4: true, 1: bad}", "the class of the label 4 is true, as which YAML reads yes"),
        ("{4: good, 5: good, 1: null}", "the only class is good; map labels to two or more"),
        ("{4: 1, 5: 1}", "the only class is positive; map labels to two or more"),
        ("{4: null}", "no label has a class; map labels to two or more"),
        ("{4: Good, 5: good, 1: bad}", "the classes Good and good differ only in case"),
        ("{a: 2.5, b: '2.50', c: '3'}", "the classes 2.5 and 2.50 are the same number"),
        ("{null: a, x: b}", "null is not a label; write it in quotation marks"),
        ("{' ': a, x: b}", "a label is empty or has more than 10,000 characters; name it as in"),
        (r'{4: "a\0b", 1: bad}', r"data.labels.4: 'a\x00b' contains a NUL character; remove it"),
        (r'{4: "\ud800", 1: bad}', r"data.labels.4: '\ud800' contains half of a surrogate pair"),
        (r'{4: "\udc80", 1: bad}', r"the class of the label 4 is \x80; write one name"),
        ("{4: .nan, 1: bad}", "the class of the label 4 is NaN; write one name"),
        ("{4: '', 1: bad}", "data.labels.4: the value is empty"),
    ],
)
def test_a_mistake_is_one_line(labels, message):
    with pytest.raises(ConfigError) as error:
        options(labels)
    assert message in str(error.value)
    assert "data.labels" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "label",
    ["0,5", "4", "no", "012", "1:30", "2024-01-01", "1e5", "[1]", "a: b", "null", 'say "x"', "20%"],
)
def test_a_label_in_a_message_is_a_key_that_yaml_reads_as_this_label(label):
    assert options(f"{{{setting_key(label)}: 1, other: 0}}").label_map[label] == 1
