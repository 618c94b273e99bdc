"""Two units of work overlap, and none is lost."""

import threading

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from components.beam import OverlappingDoFn
from core.local_beam import make_pipeline

# The DoFn is pickled, so what its threads share is in the module.
BOTH = threading.Barrier(2, timeout=60)


class Meeting(OverlappingDoFn):
    """Two elements wait for each other."""

    def result(self, element):
        BOTH.wait()
        return 10 * element


class Failing(OverlappingDoFn):
    def result(self, element):
        if element == 3:
            raise ValueError("the third element")
        return element


def test_two_elements_overlap_and_every_result_is_an_output():
    with make_pipeline() as pipeline:
        results = pipeline | beam.Create([1, 2, 3, 4], reshuffle=True) | beam.ParDo(Meeting())
        assert_that(results, equal_to([10, 20, 30, 40]))


@pytest.mark.parametrize("count", [3, 4])
def test_an_error_in_a_thread_fails_the_pipeline(count):
    elements = range(1, count + 1)
    with pytest.raises(Exception, match="the third element"), make_pipeline() as pipeline:
        _ = pipeline | beam.Create(elements, reshuffle=True) | beam.ParDo(Failing())
