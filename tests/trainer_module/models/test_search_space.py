"""The search space of a model: wrong ones are named, and those of the package are right."""

import pytest

from core.settings import PositiveInt, Section
from trainer_module import models
from trainer_module.models.layers import DropoutRate
from trainer_module.models.search_space import find_problem
from trainer_module.settings import MODELS


class Known(Section):
    """Hyperparameters of which one has no default."""

    width: PositiveInt
    dropout: DropoutRate = 0.2
    kind: str = "mean"
    fast: bool = False


@pytest.mark.parametrize(
    ("space", "problem"),
    [
        ([], "is no mapping"),
        ({"learning_rate": (1e-3, 3e-2)}, "which is neither a list nor"),
        ({"learning_rate": (1e-3, 3e-2, "cubic")}, "which is neither a list nor"),
        ({"learning_rate": 0.1}, "which is neither a list nor"),
        ({"learning_rate": (0, 0.1, "log")}, 'low must be more than 0 with "log"'),
        ({"learning_rate": (0, 0.1, "linear")}, "learning_rate does not allow 0.0: must be"),
        ({"learning_rate": (0.1, 0.01, "log")}, "low and high must be numbers"),
        ({"learning_rate": ("a", "b", "log")}, "low and high must be numbers"),
        ({"dropot": [0.1]}, "'dropot', which is no hyperparameter of the model; did you mean dro"),
        ({3: [0.1]}, "contains 3, which is no hyperparameter"),
        ({"dropout": (0.0, 2.0, "linear")}, "dropout does not allow 2.0: must be less than 1"),
        ({"dropout": [0, 0.5]}, "values of one type"),
        ({"dropout": []}, "values of one type"),
        ({"width": [32, 0]}, "width does not allow 0: must be at least"),
        ({"width": (1, 9, "log")}, "must be an integer; a range has float values, set a list"),
        # KerasTuner converts True to 1.
        ({"fast": [True, False]}, "values of one type, which is int, float or str"),
    ],
)
def test_a_wrong_search_space_is_named(space, problem):
    assert problem in find_problem(space, Known)


def test_right_search_spaces_pass():
    space = {"learning_rate": (1e-3, 1, "log"), "width": [1, 2], "dropout": (0, 0.5, "linear")}
    assert find_problem({**space, "kind": ["mean", "sum"]}, Known) is None
    assert find_problem({}, Known) is None


@pytest.mark.parametrize("name", MODELS)
def test_the_search_spaces_of_the_package_are_right(name):
    module = models.load(name)
    assert find_problem(module.SEARCH_SPACE, module.Hyperparameters) is None
