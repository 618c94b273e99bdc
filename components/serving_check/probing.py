"""The process of the probe: its start, its timeout, and the reason of its failure."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf
from absl import logging

from core import processes
from serving import probe

_MODULE = "serving.probe"
_ERROR_LINE = re.compile(r"\b\w*(Error|Exception)\b|Check failed|[Ff]atal")
_LONGEST_LINE = 300


def run_probe(
    model: str, examples: Sequence[bytes], golden: Sequence[str], timeout: float
) -> tuple[probe.Answer, str]:
    """Try a model in a new process, on the CPU.

    Args:
      model: folder or URL of the SavedModel.
      examples: serialized tf.Examples.
      golden: the texts of the golden sentences.
      timeout: seconds until the process is killed.

    Returns:
      The results of the stages that the probe has finished, and the reason for which it did not
      finish all stages. The reason is empty if it did.
    """
    with tempfile.TemporaryDirectory(prefix="serving_check_") as name:
        folder = Path(name)
        request = probe.Request(model=model, golden=list(golden))
        (folder / probe.REQUEST).write_text(json.dumps(dataclasses.asdict(request)))
        with tf.io.TFRecordWriter(str(folder / probe.EXAMPLES)) as writer:
            for example in examples:
                writer.write(example)
        output, errors = folder / "stdout", folder / "stderr"
        code = _run(folder, output, errors, timeout)
        log = errors.read_text(errors="replace")
        logging.info("The probe of %s ended with %s:\n%s", model, code, log)
        stage = _last_stage(output.read_text(errors="replace"))
        answer, garbage = _read(folder / probe.ANSWER)
    if code is None:
        limit = f"{timeout:g} s (serving.timeout_seconds)"
        return answer, f"{stage}: the process took longer than {limit}"
    if code:
        return answer, f"{stage}: {_ended(code)}{_last_error(log)}"
    if garbage:
        return answer, f"{stage}: {garbage}"
    return answer, ""


def _run(folder: Path, output: Path, errors: Path, timeout: float) -> int | None:
    """Return the exit code of the process, negative for a signal; None after the timeout."""
    environ = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        # A GPU of this machine may be full of the memory of the training's process.
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            processes.command(_MODULE, str(folder)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environ,
            # Only the command receives Ctrl-C from the terminal, and ends this process.
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()


def _last_stage(output: str) -> str:
    stages = [line for line in output.splitlines() if line.startswith(probe.STAGE)]
    return stages[-1].removeprefix(probe.STAGE) if stages else "starting the process"


def _read(path: Path) -> tuple[probe.Answer, str]:
    """Return the answer of a probe, or an empty one and the reason."""
    try:
        answer = probe.Answer(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return probe.Answer(), "the process wrote no answer"
    except (ValueError, TypeError) as error:
        return probe.Answer(), f"the answer of the process is not readable: {error}"
    return answer, ""


def _ended(code: int) -> str:
    if code > 0:
        return f"the process ended with exit code {code}"
    return f"the process was ended by {signal.Signals(-code).name}"


def _last_error(log: str) -> str:
    """Return `: LINE` with the last line of the log that names an error, or else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    # TensorFlow prints the operation, not the reason, in the lines after an exception.
    named = [line for line in lines if _ERROR_LINE.search(line)] or lines
    return f": {named[-1][:_LONGEST_LINE]}" if named else ""
