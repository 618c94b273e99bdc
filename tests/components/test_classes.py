"""The classes of an input: found in a first pass, and the one line for labels that are none."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from components.line_counts import SPLITS
from components.review_example_gen import found_labels
from components.review_example_gen.classes import check_classes, choose_classes
from components.review_example_gen.found_labels import collect_labels, join_labels
from components.review_example_gen.stars import choose_stars, rating
from components.review_example_gen.units import Source, in_units
from core.errors import InputError
from pipeline.label_setting import parse_labels, task_options
from preprocessing.labels import Labels
from preprocessing.reading.columns import Columns
from preprocessing.reading.files import find_sources
from preprocessing.reading.labels import label_name
from preprocessing.reading.layouts import decide_layouts
from preprocessing.reading.pieces import cut_file

TICKETS = [Columns("topic", None, "text")]
RATINGS = [Columns("stars", None, "text")]


def found(lines, group="all"):
    """Return the labels of a unit; `lines` has the number of each."""
    return join_labels([[(label, group, count) for label, count in lines.items()]])


def options(labels):
    return task_options(parse_labels(labels))


def choose(labels, lines, columns=TICKETS):
    return choose_classes(found(lines), options(labels), columns)


def error_of(labels, lines, columns=TICKETS):
    with pytest.raises(InputError) as error:
        choose(labels, lines, columns)
    message = str(error.value)
    assert message.startswith("data.labels") and "\n" not in message and len(message) < 600
    # The same words serve tickets.
    assert "review" not in message
    return message


# ---- each


def test_each_label_is_a_class_in_the_order_of_text_or_of_numbers():
    names = ["z", "Größe", "a b", "a,b", 'q"', "日本語", "שלום", "🙂", "A"]
    assert list(choose("each", dict.fromkeys(names, 5)).labels.names) == sorted(names)
    numbers = {"10": 9, "9": 9, "-1": 9, "4.5": 9, "04": 9, "4": 9}
    assert choose("each", numbers).labels.names == ("-1", "04", "4", "4.5", "9", "10")
    assert not choose("each", numbers).labels.is_ordered


def test_the_classes_do_not_depend_on_the_order_of_the_units():
    units = [[("b", "all", 3), ("4", "all", 2)], [("04", "all", 1), ("b", "all", 1)]]
    ways = [choose_classes(join_labels(way), options("each"), []) for way in (units, units[::-1])]
    assert ways[0] == ways[1]
    assert join_labels(units).totals == {"04": 1, "4": 2, "b": 4}


def test_names_that_differ_only_in_case_are_two_classes_and_named():
    chosen = choose("each", {"IT": 30, "it": 4, "other": 9})
    assert chosen.labels.names == ("IT", "it", "other")
    assert chosen.notes[0] == "3: IT, it, other"
    assert "IT (30), it (4) differ only in case" in chosen.notes[1]
    assert "map them to one class in data.labels" in chosen.notes[1]


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (("Late parcel", "Late  parcel"), "Late  parcel (4), Late parcel (9)"),
        (("Late parcel", "late\u00a0parcel"), r"Late parcel (9), late\xa0parcel (4)"),
        (("Refund", "Refund\u200b"), r"Refund (9), Refund\u200b (4)"),
        (("\u2764\ufe0f", "\u2764"), "\u2764 (4), \u2764\ufe0f (9)"),
        (("fin", "\ufb01n"), "fin (9), \ufb01n (4)"),
        (("4", "\uff14"), "4 (9), \uff14 (4)"),
    ],
    ids=[
        "two blanks",
        "a no-break space",
        "a zero-width space",
        "an emoji",
        "a ligature",
        "a digit",
    ],
)
def test_names_that_look_alike_are_two_classes_and_named(labels, shown):
    chosen = choose("each", {labels[0]: 9, labels[1]: 4, "other": 9})
    assert len(chosen.labels.names) == 3
    assert len(chosen.notes) == 2
    assert chosen.notes[1].startswith(f"{shown} differ only in blanks, case, invisible characters")


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        ({"2.5": 4, "2.50": 3, "3": 5}, "2.5 (4), 2.50 (3) are the same number"),
        ({"2,5": 4, "2.5": 3}, '"2,5" (4), 2.5 (3) are the same number'),
        ({"4": 4, "04": 3, "a": 5}, "04 (3), 4 (4) are the same number"),
        ({"true": 4, "1": 3, "0": 5}, "1 (3), true (4) are a number and a boolean"),
        ({"false": 4, "0": 3, "a": 5}, "0 (3), false (4) are a number and a boolean"),
    ],
)
def test_labels_that_are_the_same_number_are_named(labels, note):
    chosen = choose("each", labels)
    assert set(chosen.labels.names) == set(labels)
    assert chosen.notes[1].startswith(f"{note}, and are different classes; to join them, map them")


def test_labels_that_are_different_numbers_are_not_named():
    assert len(choose("each", {"1,000": 4, "1.0": 3, "1": 3, "nan": 2, "NaN1": 1}).notes) == 2
    assert len(choose("each", {"1,000": 4, "2": 3, "x": 3}).notes) == 1


@pytest.mark.parametrize("combined", ["joy,love", "joy; love", "love|joy", "joy#love", "love/joy"])
def test_labels_that_combine_others_are_named(combined):
    found = {"joy": 9, "love": 8, combined: 3, "other": 5, "other thing, really": 4}
    mapping = {label: label for label in found}
    for labels in ("each", mapping):
        chosen = choose(labels, found)
        assert combined in chosen.labels.names
        assert "(3) combine other labels, and are different classes" in chosen.notes[1]
    assert len(choose({**mapping, combined: "joy"}, found).notes) == 1
    assert len(choose("each", {"4": 9, "5": 8, "4,5": 7}).notes) == 1


def test_labels_that_are_no_classes_are_one_line():
    assert "no line has a text and a label in the column 'topic'" in error_of("each", {})
    assert "write a single label, such as __label__refund, before each text" in (
        error_of("each", {}, [None])
    )
    assert "all 7 lines have refund in the column 'topic'" in error_of("each", {"refund": 7})
    ids = {f"id {number}": 1 for number in range(60)}
    assert "found 60 labels in 60 lines in the column 'topic', such as id 0, id 1, id 10 and" in (
        error_of("each", ids)
    )
    many = {str(number): 9 for number in range(10_001)}
    message = error_of("each", many, [None])
    assert "more than 10,000 labels" in message and "in the files" in message
    long = {f"{number} {'x' * 5_000}\n": 1 for number in range(60)}
    error_of("each", long)
    # A few labels of one line each are no ids; `check_classes` names them.
    assert choose("each", {"a": 1, "b": 1, "c": 1}).labels.number == 3


# ---- a mapping

STARS = {"1": 9, "2": 8, "3": 7, "4": 6, "5": 5}


def test_what_a_mapping_leaves_out_is_counted_by_name():
    mapping = {1: "bad", 2: "bad", 3: None, 4: "good", 5: "good"}
    chosen = choose(mapping, STARS)
    assert chosen.labels == Labels(("bad", "good"))
    assert chosen.notes == ("2: bad, good", "left out: 3 (7)")
    chosen = choose(
        {"a": "x", "B": "y", "spam": None}, {"A": 3, "b": 2, "spam": 4, "Spam": 1, "z": 2}
    )
    assert chosen.notes[1:] == (
        "left out: Spam (1), spam (4)",
        "rejected, because data.labels does not name them: z (2)",
    )


def test_a_mapping_to_a_label_that_is_not_there_is_one_line():
    message = error_of(
        {"refund": "money", "pirce": "money", "other": "rest"},
        {"refund": 5, "price": 3, "other": 2},
    )
    assert "names pirce, which no line has in the column 'topic'; without a class: price" in message
    assert "names 9" in error_of({1: "a", 2: "b", 9: None}, {"1": 5, "2": 3})


def test_a_mapped_label_that_a_window_of_spans_lacks_is_named():
    mapping = options({"price": "money", "refund": "money", "praise": "praise", "spam": None})
    lines = found({"price": 9, "praise": 5})
    chosen = choose_classes(lines, mapping, TICKETS, spans=1)
    assert chosen.labels.names == ("money", "praise")
    assert "data.labels names refund, spam, which no line of this window has" in chosen.notes
    with pytest.raises(InputError, match="names refund, spam, which no line has in the column"):
        choose_classes(lines, mapping, TICKETS)


def test_a_window_of_spans_without_a_class_is_one_line():
    mapping = options({"price": "money", "praise": "praise"})
    with pytest.raises(InputError, match="no line for training has the class praise; add lines"):
        choose_classes(found({"price": 9, "other": 5}), mapping, TICKETS, spans=1)


@pytest.mark.parametrize(
    "lines", [{"true": 5, "false": 3}, {"No": 3, "Yes": 5}, {"off": 3, "on": 5}]
)
def test_a_mapping_of_booleans_requires_one_spelling_of_each(lines):
    # YAML reads yes, on and true as one key.
    mapping = {True: "fraud", False: "genuine"}
    assert choose(mapping, lines).labels.names == ("fraud", "genuine")
    assert "names false, no, off, which no line has" in error_of(mapping, {"yes": 5, "x": 3})


# ---- stars


@pytest.mark.parametrize(
    ("lines", "columns", "names"),
    [
        ("1 2 3 4 5", TICKETS, "1 2 3 4 5"),
        ("0 1 2 3 4", TICKETS, "0 1 2 3 4"),
        ("0 1 2 3 4 5", TICKETS, "0 1 2 3 4 5"),
        # In a column of ratings a 0 is an unknown rating.
        ("0 1 2 3 4 5", RATINGS, "1 2 3 4 5"),
        ("1 2 3 4 5 6 7 8 9 10", RATINGS, "1 2 3 4 5 6 7 8 9 10"),
        ("1 2 3", TICKETS, "1 2 3"),
        ("-1 0 1", TICKETS, "-1 0 1"),
        ("0.5 1 1.5 2 2.5 3", TICKETS, "0.5 1 1.5 2 2.5 3"),
        ("-0.5 0 0.5", TICKETS, "-0.5 0 0.5"),
        ("0 20 40 60 80 100", TICKETS, "0 20 40 60 80 100"),
        ("1/5 2/5 3/5 4/5 5/5", TICKETS, "1 2 3 4 5"),
        ("★ ★★☆ ★★★ ★★★★ ★★★★★", TICKETS, "1 2 3 4 5"),
    ],
)
def test_the_values_of_a_scale_are_ordered_classes(lines, columns, names):
    labels = lines.split()
    chosen = choose("stars", dict.fromkeys(labels, 4), columns)
    assert chosen.labels == Labels(tuple(names.split()), is_ordered=True)
    known = [label for label in labels if label in chosen.label_map]
    assert [chosen.label_map[label] for label in known] == list(range(len(names.split())))


def test_labels_of_ratings_may_be_written_in_several_ways():
    spelled = ["4", "4.5", "4,5", "4.5 out of 5 stars", "4 / 5", "4 Stars", "1 star", "4★", "★★★★☆"]
    values = [float(rating(label)) for label in spelled]
    assert values == [4, 4.5, 4.5, 4.5, 4, 4, 1, 4, 4]
    assert [rating(word) for word in ("good", "", "4 to 5", "4/", "nan", "1e3")] == [None] * 6


def test_a_few_labels_that_are_no_numbers_are_named():
    chosen = choose("stars", STARS | {"unknown": 2})
    assert chosen.notes == (
        "5: 1, 2, 3, 4, 5",
        "rejected, because they are not on the scale: unknown (2)",
    )


def test_labels_that_are_no_scale_are_one_line_with_the_values():
    message = error_of("stars", {"good": 5, "bad": 3})
    assert "requires numbers, and the labels in the column 'topic' are bad, good" in message
    assert "requires a scale of 3 to 25 values" in error_of("stars", {"1": 5, "2": 3})
    assert "are 1, 2; with data.labels: each" in error_of("stars", {"1": 5, "2": 3})
    ages = {str(number): 5 for number in range(100)}
    assert "0, 1, 2, 3, 4, 5, 6, 7 and 92 more" in error_of("stars", ages)
    message = error_of("stars", {"1": 5, "3": 4, "4": 9, "5": 9})
    assert "found the scale 1 to 5 in the column 'topic', and no line has 2;" in message
    assert "data.labels: {1: ?, 3: ?, 4: ?, 5: ?}" in message
    assert "no line has 4, 5" in error_of("stars", {"1": 5, "2": 3, "3": 9}, RATINGS)
    prices = {"1": 5, "1.99": 3, "1000000": 9}
    assert "requires a scale of 3 to 25 values" in error_of("stars", prices)


# ---- the splits


def test_a_label_that_only_eval_or_test_files_have_is_one_line_with_its_number():
    units = [[("a", "train", 5), ("b", "train", 4), ("b", "eval", 2), ("new", "eval", 3)]]
    units += [[("new", "test", 1_200)]]
    with pytest.raises(InputError) as error:
        choose_classes(join_labels(units), options("each"), TICKETS)
    assert str(error.value).startswith(
        "data.labels: no line for training has the class new (3 in the eval files, 1,200 in the "
        "test files); "
    )
    # A class that a mapping leaves out is missing nowhere.
    mapped = options({"a": "x", "b": "y", "new": None})
    assert choose_classes(join_labels(units), mapped, TICKETS).labels.names == ("x", "y")


@pytest.mark.parametrize("spans", [0, 1, 2])
def test_a_label_of_the_newest_span_may_wait_for_the_next_day(spans):
    units = [[("a", "train", 5), ("b", "train", 4), ("late", "test", 3)]]
    found = join_labels(units)
    with pytest.raises(InputError) as error:
        choose_classes(found, options("each"), TICKETS, spans=spans)
    of_labels = str(error.value)
    counts = {"train": {0: 5, 1: 4}, "eval": {0: 1, 1: 1}, "test": {2: 3}}
    with pytest.raises(InputError) as error:
        check_classes(NAMES, counts, ["test"], 0, spans=spans)
    for message in (of_labels, str(error.value)):
        assert "to another class or to null" in message
        next_day = ", or run again with the next day, whose window has it"
        assert message.endswith(next_day) == (spans > 1)
    # Another span is no remedy for a class that the newest one lacks, too.
    counts = {"train": {0: 5, 1: 4}, "eval": {2: 3}, "test": {0: 5}}
    with pytest.raises(InputError, match=r"no line for training has the class rare .*to null$"):
        check_classes(NAMES, counts, ["test"], 0, spans=spans)


NAMES = Labels(("a", "b", "rare"))


def check(examples, named=(), over=0):
    counts = [dict(enumerate(numbers)) for numbers in examples]
    by_split = dict(zip(SPLITS, counts, strict=True))
    return check_classes(NAMES, by_split, named, over)


def check_error(examples, named=(), over=0):
    with pytest.raises(InputError) as error:
        check(examples, named, over)
    return str(error.value)


def test_a_class_with_too_few_lines_for_all_splits_is_one_line():
    for examples in ([(9, 9, 2), (1, 1, 0), (1, 1, 0)], [(9, 9, 1), (1, 1, 0), (1, 1, 1)]):
        assert check_error(examples) == (
            "data.labels: too few lines of rare (2) to be in each of the splits train, eval, test, "
            "for which a class requires 3 or more; add lines, or map the labels in data.labels to "
            "another class or to null"
        )
    # With files of its own, a split needs none of the lines for training.
    assert check([(9, 9, 2), (1, 1, 0), (1, 1, 0)], ("train", "test"))
    message = check_error([(9, 9, 1), (1, 1, 0), (1, 1, 5)], ("train", "test"))
    assert "rare (1) to be in each of the splits train, eval, for which a class requires 2" in (
        message
    )
    assert check([(9, 9, 1), (1, 1, 0), (1, 1, 0)], SPLITS)
    message = check_error([(9, 9, 0), (1, 1, 0), (1, 1, 0)], over=5)
    assert "rare (0)" in message and "; increase data.max_examples, add lines" in message


def test_a_class_that_training_lacks_is_an_error_and_one_that_a_test_lacks_a_note():
    with pytest.raises(InputError, match=r"the class rare \(2 in the eval split, 2 in the test"):
        check([(9, 9, 0), (1, 1, 2), (1, 1, 2)])
    assert check([(9, 9, 9), (1, 1, 1), (1, 1, 1)]) == ()
    assert check([(9, 9, 9), (1, 1, 1), (1, 0, 0)]) == (
        "the test split has no Example of b, rare; its metrics say nothing about these classes",
    )


# ---- the first pass


def units_of(folder, options, patterns=None):
    files = find_sources(str(folder), patterns or {"all": "*"})
    layouts = decide_layouts(files, options)
    sources = [
        Source(file.group, piece)
        for file, layout in zip(files, layouts, strict=True)
        for piece in cut_file(file.path, layout)
    ]
    return in_units(sources)


def labels_in(folder, patterns=None, labels="each", **read):
    units = units_of(folder, replace(options(labels), **read), patterns)
    return join_labels(found for unit in units for found in collect_labels(unit))


def test_only_lines_that_become_examples_count(tmp_path):
    lines = ["__label__a one", "__label__A two", "__label__b,c three", "__label__a\tfour five"]
    rejected = ["__label__d", "__label__e __label__f two labels", "__label__nan x", "no label", ""]
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in lines + rejected))
    assert labels_in(tmp_path).totals == {"A": 1, "a": 2, "b,c": 1}


def test_missing_labels_are_never_a_class(tmp_path):
    missing = [None, "", "  ", "nan", "None", "NULL", "n/a", [], {}, ["a"], {"a": 1}, float("nan")]
    invalid = ["\ud800", "a\0b", "x" * 10_001]
    labels = [*missing, *invalid, "x" * 10_000, True, "True", "FALSE", False, 4, 4.0, "4", 10**17]
    rows = [json.dumps({"label": label, "text": f"t {i}"}) for i, label in enumerate(labels)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    expected = {"x" * 10_000: 1, "true": 2, "false": 2, "4": 3, str(10**17): 1}
    assert labels_in(tmp_path).totals == expected


def test_the_labels_are_counted_by_group(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text(f"label,text\nboth,x\nboth,y\nonly {name},z\n")
    by_group = labels_in(tmp_path, {"train": "train*", "test": "test*"}).lines
    assert by_group["both"] == Counter(train=2, test=2)
    assert by_group["only test"] == Counter(test=1)


@pytest.mark.slow
def test_the_reading_ends_at_too_many_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(found_labels.CollectedLabels, "MAX", 50)
    rows = [f"__label__{number} text" for number in range(100_000)]
    (tmp_path / "a.txt").write_text("\n".join(rows))
    labels = labels_in(tmp_path)
    assert 50 < len(labels.lines) < 100_000
    with pytest.raises(InputError, match="more than 50 labels"):
        choose_classes(labels, options("each"), [None])


def test_a_float_is_the_same_label_in_32_and_in_64_bits():
    single = 0.10000000149011612
    ways = choose_stars({"0.1": 1, "0.2": 1, "0.3": 1}, "", is_rating=False)[0].names
    assert ways == ("0.1", "0.2", "0.3")
    assert [label_name(value) for value in (single, 0.1, 1234567.5, 0.123456789)] == [
        *("0.1", "0.1", "1234567.5", "0.123456789")
    ]
