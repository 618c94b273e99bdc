"""`beam.args`: Beam ignores an argument that it does not know, so a typo would have no effect."""

import pytest

from core.errors import ConfigError
from pipeline.config import load_config
from platforms.beam import check_beam_args


def settings(args, more=()):
    return load_config("sample", [f"beam.args={args}", *more], environ={})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "[--direct_num_worker=2]",
            "beam.args: --direct_num_worker is unknown, did you mean --direct_num_workers?",
        ),
        (
            "['--direct_num_workers 2']",
            "beam.args: --direct_num_workers 2 is unknown, did you mean --direct_num_workers?",
        ),
        (
            "[--direct-num-workers=2]",
            "beam.args: --direct-num-workers is unknown, did you mean --direct_num_workers?",
        ),
        ("[--zzz=2]", "beam.args: --zzz is unknown, remove it"),
        (
            "[--save_main_session, 'true']",
            "beam.args: true is no argument and no value of one; remove it, or write --NAME=VALUE",
        ),
        ("[--help]", "beam.args: --help is no argument of a run; remove it"),
        (
            "[direct_num_workers=2]",
            "beam.args: direct_num_workers=2 is no argument and no value of one; "
            "write --direct_num_workers=2",
        ),
        (
            "[--direct_num_workers=two]",
            "beam.args: argument --direct_num_workers: invalid int value: 'two'",
        ),
        (
            "[--direct_running_mode=multi]",
            "beam.args: argument --direct_running_mode: invalid choice: 'multi' (choose from ",
        ),
        (
            "[--runner=SparcRunner]",
            "beam.args: --runner=SparcRunner is no runner of Beam, did you mean SparkRunner?",
        ),
        (
            "[--runner=DataflowRunner]",
            "beam.args: --runner=DataflowRunner: Missing required option: project. Set --project=",
        ),
        (
            "[--runner=dataflow, '--project=12']",
            "beam.args: --runner=dataflow: Invalid Project ID (12). ",
        ),
        (
            "[--runner=DataflowRunner, --project=my-project, --temp_location=/tmp]",
            "beam.args: --runner=DataflowRunner: Invalid GCS path (/tmp), given for the option: te",
        ),
    ],
)
def test_an_argument_that_beam_would_ignore_or_not_read_is_one_line(args, message, capfd):
    with pytest.raises(ConfigError) as error:
        check_beam_args(settings(args))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    printed = capfd.readouterr()
    assert "usage" not in printed.out + printed.err
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("args", "more"),
    [
        ("[]", ()),
        ("[--direct_num_workers=2, --direct_running_mode=multi_processing]", ()),
        ("[--direct_num_workers, '2', --save_main_session, --experiments=a, --experiments=b]", ()),
        # Only the job server of another runner knows all its arguments.
        ("[--runner=SparkRunner, --of_spark=1]", ()),
        ("[--runner=spark, --of_spark=1]", ()),
        ("[--runner=my_module.MyRunner, --of_mine=1]", ()),
        ("[--runner=DataflowRunner, --project=my-project, --temp_location=gs://bucket/tmp]", ()),
        ("[--runner=DataflowRunner, --project=my-project, --region=us-east1]", ()),
        ("[--of_flink=1]", ("beam.runner=flink",)),
        ("[--of_flink, '1']", ("beam.runner=flink",)),
    ],
)
def test_arguments_that_may_have_an_effect(args, more):
    check_beam_args(settings(args, more))
