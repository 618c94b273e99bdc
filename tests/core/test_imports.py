"""The garbage collector during the import of large libraries."""

import gc

import pytest

from core.imports import large_imports


def test_the_collector_is_off_inside_and_on_again_after_an_error():
    with pytest.raises(ImportError), large_imports():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with large_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
