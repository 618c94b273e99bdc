"""The end of an iterator, which tf.data's autotuning would delay by up to a minute."""

import subprocess
import sys

import pytest

# A process of its own, because the logical devices of a process cannot be changed.
ENDS = """
import gc, time
import tensorflow as tf
from trainer_module.inputs.autotune import without_autotune
[cpu] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
def dataset(context=None):
    numbers = tf.data.Dataset.range(10**9).map(lambda n: n + 1, tf.data.AUTOTUNE)
    return without_autotune(numbers.batch(8).prefetch(tf.data.AUTOTUNE))
mirrored = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
iterators = []
for _ in range(10):
    iterators += [iter(dataset()), iter(mirrored.distribute_datasets_from_function(dataset))]
for iterator in iterators:
    next(iterator)
time.sleep(4)
longest = 0.0
while iterators:
    start = time.perf_counter()
    iterators.pop()
    gc.collect()
    longest = max(longest, time.perf_counter() - start)
print(longest)
"""


@pytest.mark.slow
@pytest.mark.both_stacks
def test_iterators_end_at_once_with_and_without_a_strategy():
    """With autotuning the longest of these ends takes half a minute or more."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, check=True, timeout=600
    )
    assert float(done.stdout) < 5.0
