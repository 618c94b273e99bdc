"""The cause of an error, in one line."""

import pytest

from core.errors import InputError, cause, error_chain, write_again

SEVERAL_ROOTS = """Graph execution error:

Detected at node replica_1/model/logit/BiasAdd defined at (most recent call last):
  File "/a/dense.py", line 252, in call

2 root error(s) found.
  (0) INVALID_ARGUMENT:  Matrix size-incompatible: In[0]: [0,32], In[1]: [16,1]
\t [[{{node replica_1/model/logit/BiasAdd}}]]
  (1) ABORTED:  Stopped
0 successful operations.
0 derived errors ignored. [Op:__inference_train_function_4369]"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad\nmore"), "ValueError: bad"),
        (RuntimeError("OSError: full [while running 'Write/x']"), "OSError: full"),
        (InputError("a.gz is damaged [while running 'Read']"), "a.gz is damaged"),
        (
            RuntimeError(
                "{{function_node __wrapped__SaveV2_dtypes_11_device_/job:localhost/task:0}} "
                "/c/ckpt; No space left on device [Op:SaveV2]"
            ),
            "RuntimeError: /c/ckpt; No space left on device",
        ),
        (RuntimeError("no such file [Op:ReadFile] name: "), "RuntimeError: no such file"),
        (RuntimeError("Traceback (most recent\n  File x\nKeyError: 'a'\n"), "KeyError: 'a'"),
        (RuntimeError("in user code:\n\n  tensorflow.errors_impl.OpError: a\n"), "OpError: a"),
        (
            RuntimeError(SEVERAL_ROOTS),
            "INVALID_ARGUMENT: Matrix size-incompatible: In[0]: [0,32], In[1]: [16,1]",
        ),
        (
            ValueError(
                "Pipeline has validations errors: \nMissing GCS path option: temp_location.\n"
            ),
            "ValueError: Pipeline has validations errors: Missing GCS path option: temp_location.",
        ),
        (ValueError("nothing follows:"), "ValueError: nothing follows:"),
        (KeyError(), "KeyError"),
        (InputError("a.csv is empty"), "a.csv is empty"),
    ],
)
def test_the_cause_of_an_error_is_its_message_in_one_line(error, line):
    assert cause(error) == line


def test_the_remedy_for_a_lost_output_names_the_setting_and_the_output():
    assert write_again("it") == "run once with --set cache=false to write it again"


def test_a_chain_has_the_causes_of_an_error_up_to_one_that_hides_its_own():
    first, second, third = OSError("socket"), ConnectionError("request"), RuntimeError("run")
    third.__cause__, second.__context__ = second, first
    assert list(error_chain(third)) == [third, second, first]
    second.__suppress_context__ = True  # as `raise ... from None` does
    assert list(error_chain(third)) == [third, second]
