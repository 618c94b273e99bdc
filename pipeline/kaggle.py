"""Brings the Kaggle set of Amazon reviews into a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")


class FetchError(RuntimeError):
    """The data could not be brought; the message says why and what to do."""


def fetch(folder: Path, say: Callable[[str], object]) -> list[Path]:
    """Downloads what is not in `folder` yet.

    kagglehub shows a progress bar, and continues a download that was cut short where it stopped.
    A file appears in `folder` only when it is complete.

    Raises:
      FetchError: no network, no credential, or no room.
    """
    targets = [folder / name for name in FILES]
    for target in targets:
        if target.exists():
            say(f"{target} is there already")
            continue
        say(f"fetching {target.name} of Kaggle's {DATASET}")
        _move_into_place(Path(_download(target.name)), target)
    return targets


def _download(name: str) -> str:
    import kagglehub
    import requests
    from kagglehub import exceptions as kaggle

    try:
        return str(kagglehub.dataset_download(DATASET, path=name))
    except (
        kaggle.KaggleApiHTTPError,
        kaggle.UnauthenticatedError,
        kaggle.CredentialError,
    ) as error:
        raise FetchError(
            f"Kaggle refused {name}: {_first_line(error)}; it may want a credential: make an API "
            "token in your Kaggle account's settings and put it into ~/.kaggle/kaggle.json or "
            "KAGGLE_USERNAME and KAGGLE_KEY"
        ) from None
    except (kaggle.BackendError, kaggle.DataCorruptionError, kaggle.NotFoundError) as error:
        raise FetchError(
            f"{name} could not be fetched: {_first_line(error)}; call this again later"
        ) from None
    except requests.exceptions.RequestException as error:
        raise FetchError(
            f"{name} could not be fetched, Kaggle was not reached ({type(error).__name__}); check "
            "network and proxy and call this again, it continues where it stopped"
        ) from None
    except OSError as error:
        raise FetchError(f"{name} could not be stored: {error}") from None


def _move_into_place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, unfinished)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise FetchError(f"{target} could not be written: {error}") from None
    os.replace(unfinished, target)
    source.unlink()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
