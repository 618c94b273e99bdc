"""The optimizers under parameter servers, where several workers update a table at the same time."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from trainer_module import models
from trainer_module.models.layers import adam
from trainer_module.settings import MODELS

ROWS, STEPS, RATE = 262_144, 30, 1e-3
each_model = pytest.mark.parametrize("name", MODELS)


class Updates:
    """Sparse updates of a table by the optimizer of a model; all have the same gradient."""

    def __init__(self, name):
        self.table = tf.Variable(tf.zeros([ROWS]))
        self.optimizer = models.load(name).optimizer(RATE)
        self.optimizer._create_all_weights([self.table])
        # A repeated row, as in the gradient of a word that a batch has twice.
        self._rows = tf.constant([*range(0, ROWS, 512), 0])
        # AutoGraph would convert the code of Keras in a second.
        self.step = tf.function(self._step, autograph=False)

    def _step(self):
        values = tf.fill(tf.shape(self._rows), 1e-3)
        gradient = tf.IndexedSlices(values, self._rows, tf.constant([ROWS]))
        self.optimizer.apply_gradients([(gradient, self.table)])

    def state(self):
        """Return the slots of the optimizer, name -> values."""
        names = self.optimizer.get_slot_names()
        return {name: self.optimizer.get_slot(self.table, name).numpy() for name in names}


def take(updates, count):
    for _ in range(count):
        updates.step()


def test_slices_of_several_replicas_are_clipped_by_the_norm_of_their_sum():
    """TensorFlow concatenates the slices of the replicas; 2 x 0.3 is not 2 slices of 0.3."""
    table, bias = tf.Variable(tf.zeros([4, 2])), tf.Variable(0.0)
    slices = tf.IndexedSlices(
        tf.constant([[0.3, 0.4], [3.0, 4.0], [0.3, 0.4], [-1.0, 0.0]]),
        tf.constant([3, 1, 3, 0]),
        tf.constant([4, 2]),
    )
    dense = tf.convert_to_tensor(slices)
    optimizer = adam(RATE)

    def transformed(gradient):
        pairs = [(gradient, table), (tf.constant(2.0), bias)]
        for transform in optimizer.gradient_transformers:
            pairs = transform(pairs)
        return [tf.convert_to_tensor(value) for value, _ in pairs]

    norm = np.sqrt(1 + 1 + 25 + 4)
    for found, expected in zip(transformed(slices), (dense, 2.0), strict=True):
        np.testing.assert_allclose(found, expected / norm, rtol=1e-6)
    assert isinstance(optimizer.gradient_transformers[0]([(slices, table)])[0][0], tf.IndexedSlices)


@pytest.mark.slow
@pytest.mark.both_stacks
@each_model
def test_each_update_of_two_workers_counts_once(name):
    """The state of the optimizer depends on the number of equal updates, not on their order."""
    alone, shared = Updates(name), Updates(name)
    take(alone, 1 + 2 * STEPS)
    # The first step is traced in one thread.
    take(shared, 1)
    workers = [threading.Thread(target=take, args=[shared, STEPS]) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert int(shared.optimizer.iterations) == 1 + 2 * STEPS
    for slot, values in alone.state().items():
        np.testing.assert_array_equal(shared.state()[slot], values, err_msg=slot)
    # Two workers that read the same number of the step correct the bias of Adam twice alike.
    np.testing.assert_allclose(shared.table, alone.table, rtol=0.1)


@each_model
def test_an_update_of_a_table_is_one_operation_that_locks_it(name):
    updates = Updates(name)
    graph = updates.step.get_concrete_function().graph
    [handle] = [inner for outer, inner in graph.captures if outer is updates.table.handle]
    users = [
        operation
        for operation in graph.get_operations()
        if any(one is handle for one in operation.inputs)
    ]
    assert len(users) == 1, [operation.type for operation in users]
    assert users[0].get_attr("use_locking")


def test_a_sparse_gradient_changes_the_weights_as_the_same_dense_one_does():
    values = np.random.default_rng(0).normal(size=[20, 3]).astype(np.float32)
    rows = [1, 3, 3, 0]
    results = []
    for sparse in (True, False):
        table = tf.Variable(values)
        optimizer = models.load("wide_and_deep").optimizer(RATE)
        for _ in range(3):
            gradient = tf.IndexedSlices(tf.constant(values[:4] / 10), rows, [20, 3])
            dense = tf.convert_to_tensor(gradient)
            optimizer.apply_gradients([(gradient if sparse else dense, table)])
        results.append(table.numpy())
    np.testing.assert_allclose(*results, rtol=1e-6)
    assert (results[0] != values).sum() == 9
