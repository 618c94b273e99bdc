"""Schedules of Vertex AI Pipelines, by the REST API."""

from __future__ import annotations

from typing import Any

from core.errors import InputError
from pipeline.config import PipelineConfig
from platforms.package import Package
from platforms.scheduled import Scheduled
from platforms.vertex import client

_PAGE = 100


def create(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str, cron: str
) -> None:
    """Create a schedule; see `platforms.schedules.create`."""
    parent = client.parent_of(config)
    body = {
        "displayName": name,
        "cron": cron,
        "maxConcurrentRunCount": "1",
        # A run that is late starts when the one before has ended.
        "allowQueueing": True,
        "createPipelineJobRequest": {
            "parent": parent,
            "pipelineJob": client.pipeline_job(config, package, values, name),
        },
    }
    with client.readable_errors(config, name, _page(config)):
        # A second attempt would create a second schedule, so there is none.
        client.request(client.connect(config), "POST", f"{parent}/schedules", body=body)


def find(config: PipelineConfig) -> list[Scheduled]:
    """Return the schedules of the project and region."""
    api, found, page = client.connect(config), [], ""
    with client.readable_errors(config):
        while True:
            query = {"pageSize": str(_PAGE), **({"pageToken": page} if page else {})}
            answer = client.request(api, "GET", f"{client.parent_of(config)}/schedules", query)
            found += [
                Scheduled(
                    id=each["name"],
                    name=each.get("displayName", ""),
                    cron=each.get("cron", ""),
                    state=each.get("state", "").lower(),
                )
                for each in answer.get("schedules", [])
            ]
            page = answer.get("nextPageToken", "")
            if not page:
                return found


def delete(config: PipelineConfig, name: str) -> None:
    """Delete the schedules of a name."""
    ids = [each.id for each in find(config) if each.name == name]
    if not ids:
        raise InputError(f"no schedule {name} in {client.parent_of(config)}")
    with client.readable_errors(config):
        for each in ids:
            client.request(client.connect(config), "DELETE", each)


def _page(config: PipelineConfig) -> str:
    return (
        "https://console.cloud.google.com/vertex-ai/pipelines/schedules"
        f"?project={config.vertex.project}"
    )
