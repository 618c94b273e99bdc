"""Settings of Apache Flink, for `beam.runner: flink`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from core.settings import PositiveInt, Section

LOCAL = "[local]"
"""The master that starts Flink inside the job server."""
Address = Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+:[0-9]+$")]
"""`HOST:PORT`."""


class Flink(Section):
    """Apache Flink, for `beam.runner: flink`."""

    master: Literal["[local]"] | Address = LOCAL
    """REST address of a Flink cluster, `HOST:PORT`; `[local]` starts Flink inside the job
    server."""
    job_endpoint: Address | None = None
    """`HOST:PORT` of a running Beam job server; None: the run starts one, which needs Java and the
    jars of `make flink`."""
    jars: str | None = None
    """Folder with the jars of `make flink`; None: `.cache/flink/lib` of this checkout."""
    parallelism: PositiveInt = 2
    """Slots that a job uses. A slot requires a core: on two cores, which one worker keeps busy, two
    slots took as long as one."""
    worker_pool: Address = "localhost:50000"
    """Address of the pool of Python workers next to each TaskManager, as the TaskManager sees it.
    With `[local]` the workers are threads of the component."""
    shared_paths: bool = False
    """Whether the TaskManagers see the same file system as this machine. A remote cluster without
    a shared file system requires `gs://` or another object store."""
    timeout_seconds: PositiveInt = 1800
    """Greatest time without progress of any task; the job is cancelled after it. It must be longer
    than the longest unit of work, which is a whole file for gzip and zstd."""

    @field_validator("master", mode="before")
    @classmethod
    def _brackets_are_no_list(cls, value: Any) -> Any:
        # Without quotes YAML reads [local] as a list of one word.
        return LOCAL if value == ["local"] else value

    @property
    def on_this_machine(self) -> bool:
        """Whether Flink runs on this machine."""
        return self.master == LOCAL or self.master.startswith(("localhost:", "127.0.0.1:"))

    @model_validator(mode="after")
    def _a_job_server_has_a_cluster(self) -> Flink:
        if self.job_endpoint and self.master == LOCAL:
            raise ValueError(
                "job_endpoint requires the REST address of its Flink cluster; set master to "
                "HOST:PORT"
            )
        return self
