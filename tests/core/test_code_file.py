"""The code of a project: its messages name the file and the line, and its text is what counts."""

import inspect
import sys
import traceback

import pytest

from core.code_file import MAX_BYTES, CodeError, CodeFile, guarded, load, located_cause, read
from core.errors import ConfigError, InputError


def code(text, name="mine"):
    return CodeFile(kind="model", name=name, path=f"models/{name}.py", text=text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = (\n", "models/mine.py, line 2: '(' was never closed"),
        ("a = 1\n\nb = 1 / 0\n", "models/mine.py, line 3: ZeroDivisionError: division by zero"),
        (
            "import absent_library\n",
            "line 1: ModuleNotFoundError: No module named 'absent_library'",
        ),
        ("import sys\nsys.exit(0)\n", "models/mine.py, line 2: SystemExit: 0"),
        ("def built(): ...\n", "models/mine.py, line 1: build is missing; each model of a project"),
    ],
)
def test_a_broken_file_is_one_line_with_the_file_and_the_line(text, message):
    with pytest.raises(CodeError) as error:
        load(code(text), ["build"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_an_error_in_a_function_has_the_line_at_which_it_was_raised():
    file = code("def outer():\n    return inner()\n\ndef inner():\n    raise KeyError('x')\n")
    module = load(file, ["outer"])
    with pytest.raises(CodeError, match=r"models/mine.py, line 5: KeyError: 'x'"):
        guarded(file, module.outer)
    # An error that reaches the end of a run unchanged has the line as well.
    with pytest.raises(KeyError) as error:
        module.outer()
    assert located_cause(error.value) == "models/mine.py, line 5: KeyError: 'x'"
    assert "raise KeyError('x')" in "".join(traceback.format_exception(error.value))
    assert located_cause(RuntimeError("elsewhere")) == "RuntimeError: elsewhere"


def test_a_message_of_the_code_itself_is_unchanged():
    file = code(
        "from core.errors import InputError\ndef check():\n    raise InputError('too few')\n"
    )
    with pytest.raises(InputError, match=r"^too few$"):
        guarded(file, load(file, []).check)


def test_a_changed_text_is_executed_again_and_an_equal_one_is_not():
    first = load(code("value = object()"), [])
    assert load(code("value = object()"), []) is first
    assert load(code("value = 2"), []).value == 2
    with pytest.raises(CodeError):
        load(code("value = "), [])
    assert "project_model_mine" not in sys.modules
    assert load(code("value = 2"), []).value == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["\x0c", "# a\x0bb\x1cc\u2028d", "text = '\x85'"])
def test_the_source_of_a_function_is_that_of_python_whatever_precedes_it(before, end):
    """AutoGraph compiles this source."""
    module = load(code(f"{before}\n\ndef built():\n    return 1\n".replace("\n", end)), ["built"])
    assert inspect.getsource(module.built) == "def built():\n    return 1\n"


def test_annotations_are_types_as_the_components_of_tfx_require():
    assert load(code("def build(size: int): ..."), []).build.__annotations__ == {"size": int}


def test_a_file_that_cannot_travel_is_refused(tmp_path):
    file = tmp_path / "models" / "mine.py"
    with pytest.raises(ConfigError, match=r"mine\.py cannot be read: No such file"):
        read(file, "model", tmp_path)
    file.parent.mkdir()
    file.write_bytes(b"x = '\xff'")
    with pytest.raises(ConfigError, match=r"mine\.py: byte 6 \(0xff\) is not UTF-8"):
        read(file, "model", tmp_path)
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="has 32,769 bytes; at most 32,768 are allowed"):
        read(file, "model", tmp_path)
    file.write_bytes(b"#" * MAX_BYTES)
    assert read(file, "model", tmp_path).path == "models/mine.py"
