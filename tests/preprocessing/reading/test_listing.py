"""Lists of names in messages: one line of bounded length, whatever the names are."""

from preprocessing.reading.listing import counted, listed


def test_a_list_ends_with_the_number_of_the_names_that_it_omits():
    names = [str(number) for number in range(1_234)]
    assert listed(names) == "0, 1, 2, 3, 4 and 1,229 more"
    assert listed(names[:6]) == "0, 1, 2, 3, 4 and 1 more"
    assert listed(names[:5]) == "0, 1, 2, 3, 4"
    assert listed(names, 2) == "0, 1 and 1,232 more"
    assert listed([]) == ""
    assert counted(["b", "a"], {"a": 1, "b": 2_000}) == "b (2,000), a (1)"


def test_names_of_any_text_are_one_line():
    names = ["a, b", "x" * 41, "x" * 40, "two\nlines", "\0", "\udce4", "日本語"]
    quoted = [
        *('"a, b"', "x" * 40 + "...", "x" * 40, r"two\nlines", r"\x00", r"\xe4", "日本語"),
    ]
    assert listed(names, 9) == ", ".join(quoted)
    assert len(listed(["\0" * 10_000] * 10_000)) < 1_200
