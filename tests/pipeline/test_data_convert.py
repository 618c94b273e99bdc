"""Files that no run reads: what `data check` prints about them, and what `data convert` writes."""

import bz2
import csv
import gzip
import io
import json
import shlex
import tarfile
import zipfile

import pytest
import yaml
from typer.testing import CliRunner

from cli.app import app
from core.errors import ConfigError, InputError
from pipeline.config import load_config
from pipeline.data_check import converted as converted_module
from pipeline.data_check.check import check_data
from pipeline.data_convert import parts
from pipeline.data_convert.convert import LOOK, convert_folder
from pipeline.data_convert.json_documents import may_be_document, read_records
from tests.pipeline.test_data_check import look, write

RECORDS = [{"stars": n % 5 + 1, "text": f"A text of number {n}"} for n in range(6)]
BOM = b"\xef\xbb\xbf"


def look_again(tmp_path, check):
    """Run the commands of a check in this process, and look with its settings."""
    for problem in check.problems:
        for command in problem.commands:
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, done.output
    path = tmp_path / "mine.yaml"
    path.write_text(check.settings)
    return check_data(load_config(str(path), environ={}))


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def dumped(value, **options):
    return json.dumps(value, **options).encode()


def by_column():
    return {name: {str(n): one[name] for n, one in enumerate(RECORDS)} for name in RECORDS[0]}


DOCUMENTS = {
    "a list": dumped(RECORDS),
    "a list with a byte order mark": BOM + dumped(RECORDS, indent=1),
    "a list under a key": dumped({"data": RECORDS}),
    "lists side by side": dumped({"page1": RECORDS[:2], "page2": RECORDS[2:], "info": [{"n": 6}]}),
    "a list beside numbers and lists": dumped({"data": RECORDS, "box": [0.5, [1, 2]], "n": [1]}),
    "a list two levels below": dumped({"meta": {"n": 6}, "data": {"items": RECORDS}}, indent=2),
    "objects by their ids": dumped({f"R{n}": one for n, one in enumerate(RECORDS)}),
    "pandas, columns": dumped(by_column()),
    "pandas, split": dumped(
        {"columns": list(RECORDS[0]), "data": [list(one.values()) for one in RECORDS]}
    ),
    "columns": dumped({name: [one[name] for one in RECORDS] for name in RECORDS[0]}),
    "a table with a header": dumped([list(RECORDS[0]), *(list(one.values()) for one in RECORDS)]),
    "objects over several lines": b"\n".join(dumped(one, indent=1) for one in RECORDS),
    "lists on lines": dumped(RECORDS[:3]) + b"\n" + dumped(RECORDS[3:]),
    "pages on lines": b"\n".join(
        dumped({"reviews": page, "next": number, "meta": {"total": 6}})
        for number, page in enumerate([RECORDS[:3], RECORDS[3:], []])
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_records_of_a_document(name):
    content = DOCUMENTS[name]
    assert may_be_document(content, is_all=True)
    assert read_records(content, is_all=True) == RECORDS


@pytest.mark.parametrize("space", ["", "\n "])
def test_rows_without_names_lose_no_record(space):
    """As pandas writes them with orient="values", and SQLite with --arrays."""
    for first in (1, "good", "review"):  # `review` may be a class, or the name of a text
        rows = [[first, "a text"], [first, "another text"], ["bad", "a third text"]]
        lines = f",{space}".join(map(json.dumps, rows))
        content = f"[{space}{lines}]".encode()
        assert may_be_document(content, is_all=True)
        records = [{"column1": label, "column2": text} for label, text in rows]
        assert read_records(content, is_all=True) == records


@pytest.mark.parametrize("names", [["label", "text"], ["Antwort", "Frage"]])
def test_rows_with_names_are_records(names):
    rows = [["good", "text"], ["bad", "a text"]]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    columns = [{"name": name, "type": "text"} for name in names]
    for document in (
        [names, *rows],
        {"columns": names, "rows": rows, "truncated": False},
        {"columns": columns, "rows": rows},
    ):
        assert read_records(dumped(document), is_all=True) == records


@pytest.mark.parametrize(
    "content",
    [
        b'{"stars": 1, "text": "a"}\n{"stars": 2, "text": "b"}\n',
        b'{"stars": 1, "text": \n{"stars": 2, "text": "b"}\n{"stars": 2, "text": "b"}\n',
        b'{"stars": 1, "text": "the only line", "tags": [{"a": 1}]}\n',
        b"[Bad] a text\n[Good] another text\n",
        b'[1, ["one", "two"]]\n',
        b'{"items": [{"a": 1}], "text": "a text"}\n{"items": [{"a": 2}], "text": "another text"}\n',
    ],
    ids=["lines", "a broken line", "one line", "text", "a list of all kinds", "lines with lists"],
)
def test_what_is_no_document(content):
    assert not may_be_document(content, is_all=True)


def test_the_beginning_of_a_large_document_has_its_complete_records():
    content = dumped({"meta": {"n": 6}, "data": RECORDS})
    assert read_records(content[:-20], is_all=False) == RECORDS[:-1]


def reviews(count=200, word="text", encoding="utf-8"):
    rows = "".join(f"{n % 5 + 1};schön, {word} {n}\r\n" for n in range(count))
    return f"rating;review\r\n{rows}".encode(encoding)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def texts(folder="", count=40):
    return {
        f"{folder}{label}/{n}_7.txt": f"{folder} {word} schön {n}\n\nand a line\n".encode("cp1252")
        for label, word in (("pos", "good"), ("neg", "bad"))
        for n in range(count)
    }


ARCHIVES = {
    "zip of Windows-1252": (
        {"a__zip": zipped({"x y.csv": reviews(encoding="cp1252"), "__MACOSX/._x": b"\0"})},
        ["a/x y.csv"],
        200,
    ),
    "zips": (
        {
            f"{word}__zip": zipped({"r.json": dumped([{"rating": n % 5 + 1, "text": f"{word} {n}"}
            for n in range(100)])})
            for word in "abc"
        },
        ["a/r.json", "b/r.json", "c/r.json"],
        300,
    ),
    "a folder beside its archive": (
        {"a__csv__gz": gzip.compress(reviews(word="packed", encoding="utf-16")),
         "a__csv": reviews(word="plain")},
        ["a-2.csv", "a.csv"],
        400,
    ),
    "texts in tar": ({"t__tgz": tarred(texts())}, ["t/texts.jsonl"], 80),
    "a label in the names of files": (
        {f"rt-polarity__{label}": "".join(f"{word} café, film {n}\n" for n in range(90))
         .encode("latin-1") for label, word in (("pos", "good"), ("neg", "bad"))},
        ["rt-polarity.jsonl"],
        180,
    ),
    "neutral texts too": (
        {f"films__{label}": "".join(f"the {label} film {n}\n" for n in range(90)).encode()
         for label in ("pos", "neg", "neu")},
        ["films.jsonl"],
        270,
    ),
    "packed document": (
        {"a__json__gz": gzip.compress(dumped({"data": {"reviews": [
            {"stars": n % 5 + 1, "text": f"A text of number {n}"} for n in range(200)]}}))},
        ["a.json"],
        200,
    ),
    "document in UTF-16": (
        {"a__json": json.dumps([{"stars": n % 5 + 1, "text": f"text {n}"} for n in range(200)])
         .encode("utf-16")},
        ["a.json"],
        200,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_look_sees_the_content_and_its_command_makes_it_readable(tmp_path, name):
    files, names, lines = ARCHIVES[name]
    check = look(write(tmp_path, **files))
    assert not check.starts and check.is_settled and check.is_complete
    assert sum(file.lines for file in check.files) == lines
    assert check.problems[0].commands[0].startswith("amazon-reviews data convert ")
    again = look_again(tmp_path, check)
    assert again.starts and again.problems == ()
    assert again.counts == check.counts and again.texts == check.texts
    assert [file.path for file in again.files] == names


def test_a_folder_of_texts_with_splits_and_other_files(tmp_path):
    """The layout of the IMDB reviews."""
    files = {**texts("train/"), **texts("test/", 20), "imdb.vocab": b"the\nand\n" * 20}
    files |= {f"train/unsup/{n}_0.txt": b"no label" for n in range(20)}
    files["train/labeledBow.feat"] = b"9 0:9 1:1\n" * 9
    for path, content in files.items():
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_bytes(content)
    check = look(tmp_path / "in")
    assert check.is_settled and check.number_of_files == 4
    assert [file.path for file in check.files[:2]] == [
        "test: 40 files in neg, pos",
        "train: 100 files in neg, pos, unsup",
    ]
    assert [label.read_as for label in check.labels] == ["negative", "positive", "left out"]
    values = yaml.safe_load(check.settings)["data"]
    assert values["splits"] == {"train": "train.jsonl", "test": "test.jsonl"}
    assert values["labels"] == {"neg": "negative", "unsup": None, "pos": "positive"}
    again = look_again(tmp_path, check)
    assert again.starts and again.counts == check.counts
    assert "schön" in again.examples[0].text


def test_the_names_of_splits_are_a_question_with_globs(tmp_path):
    parts = {f"train-0000{n}__csv": reviews(word=f"train {n}") for n in range(3)}
    check = look(write(tmp_path, **parts, validation__csv=reviews(word="other")))
    [question] = check.problems
    assert check.starts and not question.is_blocking
    assert [file.group for file in check.files] == ["train"] * 3 + ["eval"]
    splits = yaml.safe_load(check.settings)["data"]["splits"]
    assert splits == {"train": "train-0000*", "eval": "validation.csv"}
    assert "# or: --set 'data.splits={}'" in check.settings
    assert look_again(tmp_path, check).counts == check.counts


def test_the_globs_of_splits_match_the_converted_files(tmp_path):
    files = {f"{name}__csv__gz": reviews(word=name, encoding="utf-16") for name in ("one", "two")}
    folder = write(tmp_path, **{name: gzip.compress(data) for name, data in files.items()})
    check = look(folder, "data.splits={train: one.csv.gz, test: two*}")
    assert check.is_settled
    splits = yaml.safe_load(check.settings)["data"]["splits"]
    assert splits == {"train": "one.csv", "test": "two*"}
    assert look_again(tmp_path, check).starts


def test_lines_of_utf_8_beside_others_stay_as_they_are(tmp_path):
    mixed = reviews(encoding="cp1252") + reviews(word="more").partition(b"\n")[2]
    check = look(write(tmp_path, a__csv=mixed))
    again = look_again(tmp_path, check)
    assert again.starts
    text = (tmp_path / "in-utf8" / "a.csv").read_bytes().decode()
    assert text.count("schön, ") == 400 and "\ufffd" not in text


def test_the_halves_of_an_emoji_become_one_character(tmp_path):
    """Oracle and Java write them so, and they were read as Cyrillic letters."""
    cesu = "\ud83d\ude00".encode("utf-8", "surrogatepass")
    rows = [f"{n % 5 + 1};schön {n}, ".encode() + cesu * (n % 3) for n in range(200)]
    check = look(write(tmp_path, a__csv=b"\n".join([b"rating;review", *rows, b""])))
    assert "a.csv is CESU-8 " in check.problems[0].message
    assert look_again(tmp_path, check).starts
    lines = (tmp_path / "in-utf8" / "a.csv").read_text(encoding="utf-8").split("\n")
    assert lines[1:-1] == [f"{n % 5 + 1};schön {n}, {chr(0x1F600) * (n % 3)}" for n in range(200)]


def test_a_class_label_of_hugging_face_is_read_by_its_names(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = {"label": {"names": ["World", "Sports", "Business"], "_type": "ClassLabel"}}
    meta = {"huggingface": json.dumps({"info": {"features": names}})}
    rows = {"text": [f"text {n}" for n in range(90)], "label": [n % 3 for n in range(90)]}
    table = pa.table(rows).replace_schema_metadata(meta)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    check = look(tmp_path / "in")
    assert yaml.safe_load(check.settings)["data"]["labels"] == "each"
    assert set(check.task.classes) == {"World", "Sports", "Business"}


def test_lines_without_a_label_are_left_out_by_a_setting(tmp_path):
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["Contact reason", "Description"])
    for n in range(300):
        rows.writerow([("Billing", "Returns", "")[n % 3], f"text number {n} of a ticket"])
    check = look(write(tmp_path, a__csv=out.getvalue()))
    message = check.problems[-1].message
    assert message.startswith("100 of 300 lines have no label")
    assert look_again(tmp_path, check).starts


def test_a_large_archive_is_read_in_several_places(tmp_path, monkeypatch):
    monkeypatch.setattr(converted_module, "LOOK", LOOK._replace(packed=1 << 10))
    monkeypatch.setattr(parts, "_LEAST", 1 << 16)
    monkeypatch.setattr(parts, "_TOTAL", {"bz2": 1 << 16})
    lines = [f"__label__{n // 6_000 + 1} text {n} {'x' * 120}\n" for n in range(12_000)]
    folder = write(tmp_path, a__txt__bz2=bz2.compress("".join(lines).encode()))
    check = look(folder)
    [file] = check.files
    assert (file.compression, file.is_complete) == ("bz2", False)
    assert {label.name for label in check.labels} == {"1", "2"}


def convert(*words):
    return CliRunner().invoke(app, ["data", "convert", *map(str, words)])


def test_what_a_conversion_prints(tmp_path):
    folder = write(tmp_path, a__json=dumped(RECORDS), b__jsonl=dumped(RECORDS[0]) + b"\n")
    target = tmp_path / "new"
    done = convert(folder, target)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "a.json: from a.json (one JSON document)",
        "b.jsonl: copied",
        f"2 files in {target}",
    ]
    assert sorted(path.name for path in target.iterdir()) == ["a.json", "b.jsonl"]
    again = convert(folder, target)
    assert (again.exit_code, again.stderr) == (
        2,
        f"{target} exists already; remove it, or write another folder\n",
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("[a] b.csv", reviews(encoding="utf-16")),
        ("a.zip", zipped({"b.csv": reviews()})),
        ("a.csv", reviews()),
    ],
    ids=["UTF-16", "zip", "plain"],
)
def test_one_file_is_looked_at_and_converted_without_those_beside_it(
    tmp_path, monkeypatch, name, content
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "invoice.pdf").write_bytes(b"%PDF-1.7")
    done = CliRunner().invoke(app, ["data", "check", name, "--write", "mine.yaml"])
    assert done.exit_code == (name != "a.csv") * 2
    for line in done.stdout.partition("\nnext:\n")[2].splitlines():
        if " convert " in line:
            assert CliRunner().invoke(app, shlex.split(line)[1:]).exit_code == 0
    again = CliRunner().invoke(app, ["data", "check", "--config", "mine.yaml"])
    assert again.exit_code == 0
    assert "200 read: " in again.stdout and "invoice" not in again.stdout


def with_password(archive):
    """Return an archive whose first member is marked as encrypted."""
    data = bytearray(archive)
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def with_unknown_compression(archive):
    """Return an archive whose first member has a compression that Python does not know."""
    data = bytearray(archive)
    data[8] = data[data.index(b"PK\x01\x02") + 10] = 99
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        (
            *("a.zip", zipped({"a.csv": reviews()})[:-40]),
            "that is damaged or incomplete (File is not a zip file): download or copy it again",
        ),
        ("a.zip", with_unknown_compression(zipped({"a.csv": reviews()})), "unpack it into"),
        ("a.zip", with_password(zipped({"a.csv": reviews()})), "requires a password"),
        ("a.tar.gz", tarred({"a.csv": reviews()})[:-60], "is damaged"),
        ("a.json", dumped(RECORDS)[:-9], "is one JSON document that is not valid ("),
        ("a.zip", zipped({"b.csv": reviews(), "../a.csv": b"x"}), "'../a.csv' leads out of"),
        ("a.tgz", tarred({"b.csv": reviews(), "c/../../a": b""}), "'c/../../a' leads out of"),
        ("a.zip", zipped({"a.csv": reviews(), "./a.csv": b"x"}), "have the name './a.csv'"),
    ],
    ids=[
        "zip",
        "compression",
        "password",
        "tar",
        "JSON",
        "zip outside",
        "tar outside",
        "the same name",
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, name, content, why):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(content)
    [problem] = look(folder).problems
    assert problem.message.count(f"{name} is") == 1 and why in problem.message
    done = convert(folder, tmp_path / "new")
    assert done.exit_code == 2 and done.stderr == f"{problem.message}\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("members", [{}, {"README.md": b"# x", "__MACOSX/._a.csv": b"\0"}])
def test_an_archive_without_files_of_texts_is_named(tmp_path, members):
    folder = write(tmp_path, a__zip=zipped(members), b__csv=reviews())
    with pytest.raises(InputError, match=r"a\.zip is a zip archive without files of") as error:
        convert_folder(str(folder), tmp_path / "new", print)
    assert str(tmp_path / "new") not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_a_damaged_archive_in_an_archive_is_named_by_its_place_in_it(tmp_path):
    folder = write(tmp_path, out__zip=zipped({"x/in.zip": zipped({"a.csv": reviews()})[:-40]}))
    done = convert(folder, tmp_path / "new")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{folder}/out.zip/x/in.zip is a zip archive that is damaged or ")


def test_a_member_with_an_absolute_path_is_written_below_the_folder_of_its_archive(tmp_path):
    members = {"/data/a.csv": reviews()}
    folder = write(tmp_path, a__zip=zipped(members), b__tar=tarred(members))
    assert convert(folder, tmp_path / "new").exit_code == 0
    for name in ("a", "b"):
        assert (tmp_path / "new" / name / "data" / "a.csv").read_bytes() == reviews()


def test_an_archive_does_not_replace_files_of_a_folder_with_its_name(tmp_path):
    folder = tmp_path / "in" / "data" / "day"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("label,text\n1,in the folder\n")
    with zipfile.ZipFile(tmp_path / "in" / "data.zip", "w") as archive:
        archive.writestr("day/a.csv", "label,text\n2,in the archive\n")
    command = ["data", "convert", str(tmp_path / "in"), str(tmp_path / "out")]
    assert CliRunner().invoke(app, command).exit_code == 0
    texts = [path.read_text().split(",")[-1] for path in files(tmp_path / "out")]
    assert sorted(texts) == ["in the archive\n", "in the folder\n"]


def test_a_line_of_a_text_ends_only_with_a_line_break(tmp_path):
    lines = "a {0} text\x85 of\u2028 one line\x0c each\r\nanother {0} text of its own\n"
    write(tmp_path, rt__pos=lines.format("pos"), rt__neg=lines.format("neg"))
    command = ["data", "convert", str(tmp_path / "in"), str(tmp_path / "out")]
    assert CliRunner().invoke(app, command).exit_code == 0
    [file] = files(tmp_path / "out")
    texts = [json.loads(line)["text"] for line in file.read_text().split("\n") if line]
    assert sorted(texts)[:2] == [
        "a neg text\x85 of\u2028 one line\x0c each",
        "a pos text\x85 of\u2028 one line\x0c each",
    ]
    assert len(texts) == 4


def test_a_damaged_file_is_not_converted_in_part(tmp_path):
    text = "".join(f"{n % 5 + 1}\tgutes Gerät {n * 7919 % 1000003}\n" for n in range(20_000))
    packed = gzip.compress(f"stars\ttext\n{text}".encode("cp1252"))
    folder = write(tmp_path, a__gz=packed[: len(packed) // 2])
    done = convert(folder, tmp_path / "new")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "is damaged, so only its beginning can be converted" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kept", [30, -4], ids=["no content", "a part of the content"])
def test_a_damaged_text_of_a_folder_of_texts_is_named(tmp_path, kept):
    for name, content in texts().items():
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    damaged = tmp_path / "in" / "pos" / "39_7.txt"
    damaged.write_bytes(gzip.compress(bytes(range(32, 127)) * 1_000)[:kept])
    [*_, problem] = look(tmp_path / "in").problems
    assert problem.message.startswith(f"{damaged}: ") and not problem.settings
    done = convert(tmp_path / "in", tmp_path / "new")
    assert (done.exit_code, done.stderr) == (2, f"{problem.message}\n")
    assert not (tmp_path / "new").exists()


def test_a_single_line_in_another_encoding_is_converted_although_a_run_would_reject_it(tmp_path):
    lines = [f"{n % 5 + 1}\tgutes Gerät Nummer {n}" for n in range(200)]
    folder, target = tmp_path / "export", tmp_path / "utf-8"
    folder.mkdir()
    content = "\n".join(["stars\ttext", *lines]).encode()
    (folder / "x.tsv").write_bytes(content + "\n5\tschönes Gerät\n".encode("cp1252"))
    done = CliRunner().invoke(app, ["data", "convert", str(folder), str(target)])
    assert done.exit_code == 0, done.output
    [file] = target.iterdir()
    found = file.read_text(encoding="utf-8").splitlines()
    assert len(found) == 202 and "gutes Gerät Nummer 199" in found[200]
    assert found[201].endswith("schönes Gerät")


def test_a_new_folder_inside_of_the_input_is_refused(tmp_path):
    folder = write(tmp_path, a__txt="__label__1 bad\n")
    (tmp_path / "link").symlink_to(folder)
    for base, target in ((folder, folder / "new"), (tmp_path / "link", folder / "a" / "b")):
        with pytest.raises(ConfigError, match=f"^{target} is inside of {base}; write a folder "):
            convert_folder(str(base), target, print)
        assert list(folder.iterdir()) == [folder / "a.txt"]
    assert convert_folder(str(folder / "a.txt"), folder / "new", print) == 1
