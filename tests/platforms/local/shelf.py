"""A destination that the product does not have: a shelf of named models, one of which is in front.

The tests add it to the product by a row of the table and a value of the setting alone.
"""

from __future__ import annotations

import json
import os

from components.destination import ROLLED_BACK, SERVED, Destination, Push, PushedModel
from core.errors import InputError
from serving.identity import identity


class Shelf(Destination):
    """Models by name in a folder, and a file with their order and the one in front."""

    setting = "shelf.folder"
    repair = "take it off the shelf"

    def __init__(self, shelf: str):
        self.location = f"the shelf {shelf}"
        self._shelf = shelf

    def push(self, model: str, uri: str, reference: str | None = None) -> Push:
        from components.saved_models import copy_folder

        names, _, _ = self._read()
        name = f"m{len(names) + 1}"
        copy_folder(model, self.folder(name))
        copy_folder(model, uri)
        self._write([*names, name], name, [])
        return Push(f"shelf:{name}", name)

    def pushed_models(self) -> list[PushedModel]:
        names, front, back = self._read()
        states = {**dict.fromkeys(back, ROLLED_BACK), front: SERVED}
        found = [
            PushedModel(name, 0.0, identity(self.folder(name)), states.get(name, ""))
            for name in names
        ]
        return found[::-1]

    def folder(self, name: str) -> str:
        return os.path.join(self._shelf, name)

    def find_name(self, location: str) -> str | None:
        return location.removeprefix("shelf:") if location.startswith("shelf:") else None

    def state(self) -> str | None:
        return json.dumps(self._read())

    def _check_loads(self, model: PushedModel) -> None:
        if not os.path.isdir(self.folder(model.name)):
            raise InputError("it is missing")

    def _serve_again(self, model: PushedModel) -> None:
        names, front, back = self._read()
        self._write(names, model.name, [*back, front])

    def _read(self) -> tuple[list[str], str, list[str]]:
        try:
            with open(os.path.join(self._shelf, "order.json")) as file:
                names, front, back = json.load(file)
        except FileNotFoundError:
            return [], "", []
        return names, front, back

    def _write(self, names: list[str], front: str, back: list[str]) -> None:
        os.makedirs(self._shelf, exist_ok=True)
        with open(os.path.join(self._shelf, "order.json"), "w") as file:
            json.dump([names, front, back], file)
