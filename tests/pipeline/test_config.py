"""Settings: the accepted values, and the one line of each error."""

import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigError
from core.overrides import parse_overrides
from pipeline.config import (
    PRESETS,
    environment_settings,
    load_config,
    load_recorded_settings,
    recorded_settings,
)
from pipeline.inputs import input_files, read_options
from preprocessing.reading.layouts import decide_layouts
from trainer_module.models import hyperparameters


def load(tmp_path, text="", overrides=""):
    file = tmp_path / "config.yaml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    return load_config(str(file), [overrides] if overrides else [], environ={})


@pytest.mark.parametrize("preset", sorted(p.stem for p in PRESETS.glob("*.yaml")))
def test_a_preset_loads_by_its_bare_name_and_sample_is_the_default(preset):
    environ = {} if preset == "sample" else {"PIPELINE_CONFIG": preset}
    assert load_config(environ=environ) == load_config(str(PRESETS / f"{preset}.yaml"))


def test_one_number_caps_every_split(tmp_path):
    config = load(tmp_path, overrides="data.max_examples=100")
    assert config.data.max_examples == {"train": 100, "eval": 100, "test": 100}


def test_paths_follow_root_and_become_absolute(tmp_path):
    config = load(tmp_path, "paths: {root: here}")
    assert config.paths.root == os.path.abspath("here")
    assert config.paths.serving == os.path.abspath("here/serving")
    assert config.paths.metadata == os.path.abspath("here/metadata.sqlite")


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("trainig: {}", "", "trainig: unknown key, did you mean training?"),
        ("", "training.epochs=three", "training.epochs: must be an integer, not 't"),
        ("", "training.strategy=mirorred", "unknown value 'mirorred', did you mean mirrored?"),
        ("training:", "", "training: the section is empty"),
        ("data:\ninput_base: in", "", "data: the section is empty"),
        ("", "data=", "data: the section is empty"),
        ("", "epochs=3", "epochs: unknown key, did you mean training.epochs?"),
        ("", "epoch=3", "epoch: unknown key, did you mean training.epochs?"),
        ("", "training.batch_size=8", "unknown key, did you mean batch_size_per_replica?"),
        ("", "training.min_acuracy=1", "unknown key, did you mean evaluation.min_accuracy?"),
        ("", "beam.name=x", "beam.name: unknown key, known are runner, args, flink"),
        ("", "training.workers=2", "2 workers require training.strategy: multi_worker_mirrored"),
        ("", "training.epochs=I", "training.epochs: must be an integer, not 'I'"),
        (
            "",
            "training.hyperparameters={a: .nan}",
            "hyperparameters.a: must be a finite number, tr",
        ),
        (
            "",
            "training.hyperparameters={a: [1, 2]}",
            "training.hyperparameters.a: must be a finite number, true, false or text, not [1, 2]",
        ),
        ("data: {input_base: x, splits: {test: a}}", "", "splits names no train files"),
        ("- 1", "", "settings are a mapping"),
        ("data.labels: each", "", "in a file write labels: below data:"),
        ("training: {hyperparameters.x: 1}", "", "in a file write x: below hyperparameters:"),
        ("Data: {}", "", "Data: unknown key, did you mean data?"),
        ("", "training.strategy=TPU", "unknown value 'TPU', did you mean tpu?"),
        ("data: {columns: [text]}", "", "data.columns: must be a mapping of keys, not ['"),
        ("", "data.columns.text=a: b", "must be a string, not {'a': 'b'}"),
        ("name: a\n---\nname: b", "", "line 2: not valid YAML: expected a single document in the"),
        ("data:\n\tlabels: each", "", "cannot start any token; indent with spaces"),
        ("data:\n  span: 1\n window: 2", "", "line 3: not valid YAML: expected <block end>, but"),
        ("name: a: b", "", "line 1: not valid YAML: mapping values are not allowed here; check"),
        ("", "data..labels=each", "'data..labels=each' is not KEY=VALUE"),
        ("", "data.=each", "'data.=each' is not KEY=VALUE"),
        ("", "data.input_base=in #2,name=a", "YAML reads '#2,name=a' as a comment"),
        (
            "",
            "data.columns.text=#2",
            "'#2' is not a YAML value (YAML reads '#2' as a comm",
        ),
        ("paths: {root: ~no-such-user/runs}", "", "begins with ~no-such-user, and no home folder"),
        ("data: {input_base: ~no-such-user}", "", "or ./~no-such-user for a folder with this name"),
        ("a: [", "", "line 1: not valid YAML"),
        ("a: 1\nb: !!float abc", "", "line 2: not valid YAML: 'abc' is no value of the type"),
        ("a: !!bool", "", "line 1: not valid YAML: '' is no value of the type !!bool"),
        (f"a: {'9' * 5000}", "", f"YAML: '{'9' * 40}' is no value of the type !!int"),
        ('a: 1\nb: "\\U00110000"', "", "line 2: not valid YAML: an escape is no character; write"),
        ("", "name=!!float x", "name: '!!float x' is not a YAML value ('x' is no value of"),
        ("a: &x [*x]", "", "config.yaml: line 1: not valid YAML: found unconstructable recursive"),
        (f"a: {'[' * 1000}", "", "config.yaml: not valid YAML: it has too many levels"),
        ("name: caf\udce9", "", "config.yaml: byte 10 (0xe9) is not UTF-8, convert it"),
        ("data:", "data.window=2", "data is not a section, but ''; correct or remove data in the"),
        (
            "name: a\ndata: {}\ndata: {}",
            "",
            "config.yaml: line 3: not valid YAML: the key 'data' is",
        ),
        ("", "kubeflow.volume={claim: a, claim: b}", "kubeflow.volume: '{claim: a, claim: b}' is"),
        ("paths: {root: 'exp[1]'}", "", "/exp[1] contains [, * or ?, which libraries match as a"),
        ("paths: {root: 'gs:/bucket/runs'}", "", "gs:/bucket/runs is not a valid URL; write gs:"),
        ("paths: {root: '${HOME}/x'}", "", "contains ${HOME}, and variables in settings are not"),
        ("paths: {root: '${HOME:-/root}/x'}", "", "contains ${HOME:-/root}, and variables in set"),
        (
            "server: {sample_folder: '$HOME/x'}",
            "",
            "contains $HOME, and variables in settings are n",
        ),
        ("beam: {flink: {jars: '${HOME}/x'}}", "", "contains ${HOME}, and variables in settings"),
        (
            "serving_check: {golden: $HOME/x}",
            "",
            "contains $HOME, and variables in settings are no",
        ),
        (
            "server: {sample_folder: 'gs://bucket/x'}",
            "",
            "server.sample_folder: must be a path of this machine, and no URL, not 'gs://bucket/x'",
        ),
        (
            "beam: {flink: {jars: 's3://b/x'}}",
            "",
            "beam.flink.jars: must be a path of this machine",
        ),
        (
            "beam: {flink: {jars: 'gs:/b/x'}}",
            "",
            "beam.flink.jars: must be a path of this machine",
        ),
        ("paths: {serving: 'gs://$MODELS'}", "", "contains $MODELS, and variables in settings"),
        ("paths: {serving: []}", "", "paths.serving: must be a string, not []"),
        ("", "name='mine,training.epochs=3", """name: "'mine,training.epochs=3" is not a YAML v"""),
        ("", "training.epochs", "'training.epochs' is not KEY=VALUE"),
        ("", "training.epochs=9007199254740993", "must be at most 9,007,199,254,740,992, not 9007"),
        ("training: {epochs: x, loop: y}", "", "(and 1 more)"),
        ("evaluation: {patterns: {price: '('}}", "", "price: '(' is not a regular expression"),
        ("evaluation: {patterns: {length_bucket: a}}", "", "is the name of a feature; choose"),
        ("evaluation: {patterns: {'a b': a}}", "", "evaluation.patterns.a b: must match the"),
        ("", "name=9a", "name: must match the pattern '^[a-z][a-z0-9_-]*$', not '9a'"),
        ("paths: {1: x}", "", "paths.1: the key must be a string, not 1"),
        ("", "training.profile_steps=3", "training.profile_steps: must be a list, not 3"),
        ("", "training.profile_steps=[3]", "training.profile_steps.1: is missing"),
        ("", "training.profile_steps=[1, 2, 3]", "must have at most 2 items, not [1, 2, 3]"),
        ("", "tracking.mlflow=127.0.0.1:5000", "has no scheme; write http://127.0.0.1:5000"),
        ("", "tracking.mlflow=mlflow:5000", "has no scheme; write http://mlflow:5000"),
        ("", "tracking.mlflow=file-server:5000", "write http://file-server:5000"),
        ("", "tracking.mlflow=databricks.example.com", "write http://databricks.example.com"),
        ("", "tracking.mlflow=mlflow.example.com", "write http://mlflow.example.com"),
        ("", "tracking.mlflow=sqlite:///mlflow.db", "store of a server, and not a server; start"),
        ("", "tracking.mlflow=postgresql+psycopg2://h/db", "store of a server, and not a server"),
        ("", "tracking.mlflow=file:./mlruns", "store of a server, and not a server"),
        ("", "tracking.mlflow=file:///mlruns", "store of a server, and not a server"),
        ("", "tracking.mlflow=./mlruns", "store of a server, and not a server"),
        ("", "tracking.mlflow=mlruns/", "store of a server, and not a server"),
        ("", "tracking.mlflow=mlruns", "store of a server, and not a server"),
        ("", "tracking.mlflow=databricks", "databricks has no host"),
        ("", "tracking.mlflow=databricks://profile", "databricks://profile has no host"),
        ("", "tracking.mlflow=http://", "http:// has no bucket or host after ://"),
        ("", "tracking.mlflow=http:///mlflow", "http:///mlflow has no bucket or host"),
        ("", "tracking.mlflow=http://:5000", "http://:5000 has no bucket or host"),
        (
            "",
            "data.max_examples=1e6",
            "data.max_examples.train: must be an integer, not",
        ),
        ("", "data.window=3", "with --set: data.window: 3 requires spans in data.input_base"),
        ("", "tracking.mlflow=http://mlflow:port", "tracking.mlflow: the address is not valid"),
        ("", "tracking.mlflow=http://mlflow:99999", "tracking.mlflow: the address is not valid"),
        ("", "tracking.mlflow=ftp://mlflow", "ftp://mlflow has the scheme ftp; set the address"),
        ("", "tracking.mlflow=my server", "my server has no scheme; set the address"),
        ("", "tracking.mlflow='http://m:1/#/experiments/1'", "is the address of a page; set only"),
        ("", "kubeflow.endpoint='https://me:pw@host'", "kubeflow.endpoint: the URL contains a pa"),
        ("", "tracking.mlflow=me:secret@mlflow:5000", "contains a password; set MLFLOW_TRACKING"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(tmp_path, text, overrides, message):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text, overrides)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "uri",
    ["http://mlflow:5000", "https://example.com/mlflow/", "http://me@[::1]:5000", "HTTP://mlflow"],
)
def test_the_address_of_a_tracking_server_is_accepted(tmp_path, uri):
    assert load(tmp_path, overrides=f"tracking.mlflow='{uri}'").tracking.mlflow == uri


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080", "https://me@example.com/pipeline", "https://h/p@q"]
)
def test_an_endpoint_without_a_password_is_accepted(tmp_path, url):
    assert load(tmp_path, overrides=f"kubeflow.endpoint='{url}'").kubeflow.endpoint == url


@pytest.mark.parametrize("key", ["tracking.mlflow", "kubeflow.endpoint"])
@pytest.mark.parametrize(
    "uri",
    [
        "http://me:pa#zz@m:1",
        "me:pazz@m:5000",
        "http://me:pazz@m:x",
        "http://a:pazz@",
        "http://a:pazz@[m",
    ],
)
def test_no_message_contains_a_part_of_a_password(tmp_path, key, uri):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, overrides=f"{key}='{uri}'")
    assert "zz" not in str(error.value)
    assert "'pa'" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "values"),
    [
        ("a='x,y',b=1", ["x,y", 1]),
        ("a='it''s, so',b=1", ["it's, so", 1]),
        ('a="it\'s",b=["x, y", \'z]\']', ["it's", ["x, y", "z]"]]),
        ("a={k: 'x, }', l: [1, 2]}, b = 1", [{"k": "x, }", "l": [1, 2]}, 1]),
        ("a=part[0-9].csv,b=1", ["part[0-9].csv", 1]),
        ("a=it's,b=1]", ["it's", "1]"]),
        ("a=gs://x/1,2,,b=1,", ["gs://x/1,2", 1]),
        ("a='x,b=1',b={c: 1,d=2}", ["x,b=1", {"c": 1, "d=2": ""}]),
        ("a=1e-3,b=-1.5E2", [0.001, -150]),
        ("a=2E4,b=1e", [20000, "1e"]),
        ("a=0010,b=-10", ["0010", -10]),
        ("a=0x10,b=10:30", ["0x10", "10:30"]),
        ("a=1:30.5,b=0b1", ["1:30.5", "0b1"]),
        ("a='in #2',b=c#3", ["in #2", "c#3"]),
    ],
)
def test_quotes_and_brackets_keep_their_commas_and_powers_of_ten_are_numbers(overrides, values):
    assert parse_overrides(overrides) == list(zip("ab", values, strict=True))


EMPTY = {
    "": "the value is empty",
    " ": "the value is empty",
    "''": "the value is empty",
    "' '": "the value is empty",
    "gs://": "gs:// has no bucket or host",
    "gs:///reviews": "gs:///reviews has no bucket or host",
    "http://:5000": "http://:5000 has no bucket or host",
}


@pytest.mark.parametrize("value", EMPTY)
@pytest.mark.parametrize(
    "key", ["data.input_base", "paths.root", "name", "tracking.mlflow", "cluster.image"]
)
def test_an_empty_value_is_an_error_in_a_file_an_option_and_a_variable(tmp_path, key, value):
    message = f"{key}: {EMPTY[value]}"
    *sections, last = key.split(".")
    file = tmp_path / "config.yaml"
    file.write_text("".join(f"{name}:\n  " for name in sections) + f"{last}: {value}\n")
    for call in (
        lambda: load_config(str(file), environ={}),
        lambda: load_config("sample", [f"training.seed=1,{key}={value}"], environ={}),
        lambda: load_config(environ={"PIPELINE_SET": f"{key}={value}"}),
    ):
        with pytest.raises(ConfigError) as error:
            call()
        assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("name: #comment", "name"),
        ("data: {columns: {text: , title: null}}", "data.columns.text"),
        ("data: {columns: {text}}", "data.columns.text"),
        ("data: {splits: {train: ''}}", "data.splits.train"),
        ("data:\n  labels:\n    3:\n", "data.labels.3"),
        ("beam:\n  args:\n  -\n  - x\n", "beam.args.0"),
        ("beam: {args: ['--temp_location=']}", "beam.args.0"),
        ("kubeflow: {training_pod: {priorityClassName: }}", "kubeflow.training_pod.priorityCl"),
    ],
)
def test_an_empty_value_inside_of_a_value_is_an_error(tmp_path, text, key):
    with pytest.raises(ConfigError, match=rf"config.yaml: {re.escape(key)}\S*: .*unset variable"):
        load(tmp_path, text)


@pytest.mark.parametrize("text", ["", "# nothing", "---", "---\n# nothing\n", "null"])
def test_a_file_without_settings_has_the_defaults(tmp_path, text):
    assert load(tmp_path, text).data.input_base is None


def test_the_variables_that_decide_settings_are_named():
    both = {"PIPELINE_CONFIG": "stars", "PIPELINE_SET": "training.epochs=3", "HOME": "/root"}
    assert (
        environment_settings(None, both) == "PIPELINE_CONFIG=stars, PIPELINE_SET=training.epochs=3"
    )
    assert environment_settings("mine.yaml", both) == "PIPELINE_SET=training.epochs=3"
    assert environment_settings("mine.yaml", {"PIPELINE_CONFIG": "stars"}) == ""


@pytest.mark.parametrize("variable", ["PIPELINE_CONFIG", "PIPELINE_SET"])
def test_an_empty_variable_or_option_is_an_error(variable):
    with pytest.raises(ConfigError, match=f"{variable}: the variable is empty"):
        load_config(environ={variable: ""})
    with pytest.raises(ConfigError, match="--set: the value is empty"):
        load_config(overrides=[""], environ={})


@pytest.mark.parametrize(
    ("preset", "overrides"),
    [
        *((preset.stem, "") for preset in PRESETS.glob("*.yaml")),
        ("sample", "data.labels={yes: 1, off: 0, 3: null},data.columns={title: null}"),
        ("sample", "data.max_examples=7,data.splits={train: a.csv, test: 'b*'}"),
        ("sample", "paths.root=~/runs,paths.serving=gs://bucket/é,data.input_base=/in"),
        ("sample", "training.hyperparameters.table_size=1024,training.tuner_trials=2"),
        ("sample", "cluster.resources={Trainer: {cpu: 0.1, memory: 16G}},beam.args=[--x=1]"),
        (
            "sample",
            "serving_check.golden=mine.txt,evaluation.slices=[],training.learning_rate=1e-7",
        ),
        ("sample", "beam={runner: flink, flink: {master: [local]}}"),
        (
            "sample",
            "kubeflow.training_pod={tolerations: [{key: x}]},kubeflow.volume={claim: a, mount: /b}",
        ),
    ],
)
def test_settings_are_the_same_after_they_were_recorded(preset, overrides):
    config = load_config(preset, [overrides] if overrides else [], environ={})
    assert load_recorded_settings(recorded_settings(config)) == config


@pytest.mark.parametrize("word", ["null", "~", "Null"])
def test_null_in_words_is_a_value(tmp_path, word):
    assert load(tmp_path, f"data: {{input_base: {word}}}").data.input_base is None
    assert load(tmp_path, "", f"data.input_base={word}").data.input_base is None


def test_numbers_with_a_comma_are_one_value(tmp_path):
    text = "training: {model: text_cnn, hyperparameters: {filters: 7}}"
    override = "training.hyperparameters.kernel_sizes='2,3',training.seed=3"
    training = load(tmp_path, text, override).training
    assert training.hyperparameters == {"filters": 7, "kernel_sizes": "2,3"}
    assert hyperparameters(training).sizes == [2, 3]


def test_a_mapping_for_a_section_keeps_the_other_keys_of_the_section(tmp_path):
    text = "training: {epochs: 7, seed: 3}\nbeam: {flink: {parallelism: 5}}\n"
    text += "data: {labels: {a: b, c: d}}"
    overrides = "training={epochs: 2},beam={runner: flink, flink: {timeout_seconds: 9}}"
    config = load(tmp_path, text, f"{overrides},data={{labels: {{x: y, z: w}}}}")
    assert (config.training.epochs, config.training.seed) == (2, 3)
    flink = config.beam.flink
    assert (config.beam.runner, flink.parallelism, flink.timeout_seconds) == ("flink", 5, 9)
    # The value of a single setting is replaced.
    assert config.data.labels == {"x": "y", "z": "w"}


def test_a_key_may_override_a_merged_one(tmp_path):
    text = "kubeflow:\n  training_pod: {<<: {x: '1', y: '1'}, x: '2'}\n"
    assert load(tmp_path, text).kubeflow.training_pod == {"x": "2", "y": "1"}


def test_a_missing_file_is_named_with_the_presets():
    with pytest.raises(ConfigError, match=r"^--config: no file ''; set a YAML file"):
        load_config("", environ={"PIPELINE_CONFIG": "reduced"})
    with pytest.raises(
        ConfigError, match=r"^PIPELINE_CONFIG: no file 'nope.yaml'.*amazon, flink, gke, reduced"
    ):
        load_config(environ={"PIPELINE_CONFIG": "nope.yaml"})
    with pytest.raises(ConfigError, match=r"no file '~no-such-user/mine.yaml'"):
        load_config("~no-such-user/mine.yaml", environ={})


def test_a_missing_file_is_named_with_the_one_that_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/mine.yaml").touch()
    for value, message in {
        "sampel": "no file 'sampel', did you mean sample?",
        "mine/mine.yml": "no file 'mine/mine.yml', did you mean mine/mine.yaml?",
        "mine": "'mine' is a folder; set a YAML file, such as mine/mine.yaml",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(message)):
            load_config(value, environ={})


keys = st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,2}", fullmatch=True)
values = st.one_of(
    st.integers(),
    st.booleans(),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.integers(), max_size=3),
)


@given(st.lists(st.tuples(keys, values), min_size=1, max_size=5))
def test_overrides_round_trip(pairs):
    def flow(value):
        text = yaml.safe_dump(value, default_flow_style=True, width=10**9)
        return text.removesuffix("...\n").strip()

    text = ",".join(f"{key}={flow(value)}" for key, value in pairs)
    assert parse_overrides(text) == pairs


@given(st.text())
def test_any_override_text_is_parsed_or_refused(text):
    try:
        parse_overrides(text)
    except ConfigError as error:
        assert len(str(error).splitlines()) <= 1


@pytest.mark.parametrize(("preset", "file"), [("sample", "reviews.ft.txt"), ("stars", "stars.csv")])
def test_a_preset_without_an_input_reads_its_sample(preset, file):
    config = load_config(preset, environ={})
    [source] = input_files(config).files
    assert os.path.basename(source.path) == file
    assert decide_layouts(input_files(config).files, read_options(config))
