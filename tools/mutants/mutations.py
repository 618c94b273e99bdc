"""The mutants of a package that Cosmic Ray can create, except those without an effect."""

from __future__ import annotations

import ast
import contextlib
import difflib
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor, use_mutation

# This project uses "is" only for None, True and False, for which "==" is equivalent.
_EQUIVALENT = re.compile(r"_(Is_Eq|IsNot_NotEq|Eq_Is|NotEq_IsNot)$")


class Mutation(NamedTuple):
    """A fault: `operator` applied to occurrence number `occurrence` in `module`."""

    module: Path
    operator: str
    occurrence: int
    start: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.module}:{self.start[0]} {self.operator.removeprefix('core/')}"


def draw_mutations(package: str, seed: int) -> Iterator[Mutation]:
    """Yield the mutants of every module below the folder `package`, in random order.

    If several mutants replace the same operator at the same place, one of them is drawn.
    """
    places: dict[tuple[str, tuple[int, int], str], list[Mutation]] = defaultdict(list)
    for mutation in _find_mutations(package):
        kind = "_".join(mutation.operator.split("_")[:2])
        places[str(mutation.module), mutation.start, kind].append(mutation)
    chance = random.Random(seed)
    for place in chance.sample(sorted(places), len(places)):
        mutation = chance.choice(places[place])
        if _is_change(mutation):
            yield mutation


@contextlib.contextmanager
def mutated(tree: Path, mutation: Mutation) -> Iterator[str]:
    """Apply the mutation below `tree` in this context; yield the changed lines as a diff."""
    operator = plugins.get_operator(mutation.operator)()
    with use_mutation(tree / mutation.module, operator, mutation.occurrence) as (before, after):
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        yield "\n".join(list(lines)[3:])


def _find_mutations(package: str) -> Iterator[Mutation]:
    operators = {
        name: plugins.get_operator(name)()
        for name in plugins.operator_names()
        if not plugins.get_operator(name).arguments() and not _EQUIVALENT.search(name)
    }
    for module in sorted(Path(package).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(module.read_text(encoding="utf-8"))))
        for name, operator in operators.items():
            starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, start in enumerate(starts):
                yield Mutation(module, name, occurrence, start)


def _is_change(mutation: Mutation) -> bool:
    before = mutation.module.read_text(encoding="utf-8")
    operator = plugins.get_operator(mutation.operator)()
    after = MutationVisitor.mutate_code(before, operator, mutation.occurrence)
    if after is None:
        return False
    try:
        return _meaning(after) != _meaning(before)
    except SyntaxError:
        # An operator takes the `*` before keyword-only parameters for a multiplication.
        return False


def _meaning(source: str) -> str:
    """Return a dump of the syntax tree without annotations, which have no effect at run time."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)
