"""The tests of a module: the tests that import it, and the tests of its package."""

from __future__ import annotations

from pathlib import Path

import grimp

_MOST = 15
_CODE = (
    *("cli", "pipeline", "platforms", "components"),
    *("serving", "trainer_module", "preprocessing", "core"),
)


class Tests:
    """The tests of every module in the working folder."""

    def __init__(self) -> None:
        self._graph = grimp.build_graph("tests", *_CODE, cache_dir=None)

    def of(self, module: Path) -> list[str]:
        """Return the test files that are nearest to a module, in order of their distance.

        Tests of whole runs are excluded, because each takes minutes.
        """
        name = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
        own = self._graph.find_descendants(f"tests.{module.parts[0]}")
        files = [
            test
            for test in own | self._graph.find_downstream_modules(name)
            if test.split(".")[-1].startswith("test_") and not test.startswith("tests.e2e.")
        ]
        distances = {test: self._distance(test, name) + (test not in own) for test in files}
        nearest = sorted(files, key=lambda test: (distances[test], test))
        return [test.replace(".", "/") + ".py" for test in nearest[:_MOST]]

    def _distance(self, test: str, module: str) -> int:
        """Return the length of the import chain; 4 if a test starts a program instead."""
        chain = self._graph.find_shortest_chain(test, module)
        return len(chain) if chain else 4
