"""The datasets of each process under a strategy, and the number of steps of an epoch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from trainer_module.cluster.collective import Collective
from trainer_module.cluster.tf_config import Cluster
from trainer_module.feeding import ngram_counts
from trainer_module.feeding.dataset import Batching, Split, endless, make_dataset
from trainer_module.settings import TrainingJob

_ADAPT_BATCH = 4096


class Inputs:
    """The train and the eval split of a job, as datasets for its strategy.

    Every process makes batches of `batch_size_per_replica` Examples for its own replicas from its
    own share, so an epoch contains every Example once. Under parameter servers only the coordinator
    reads. There a step is the work of a single worker, with a batch for each of its replicas. The
    coordinator sends serialized Examples, which are a third of the parsed ones in bytes, and the
    workers parse them. Batches of words are parsed before, because they are sorted by length.
    """

    def __init__(
        self,
        job: TrainingJob,
        feature_names: tuple[str, ...],
        strategy: tf.distribute.Strategy,
        cluster: Cluster | None,
        collective: Collective,
        *,
        static_shapes: bool,
    ):
        training = job.training
        self._strategy = strategy
        self._by_coordinator = isinstance(strategy, tf.distribute.ParameterServerStrategy)
        self._processes = cluster.workers if cluster and not self._by_coordinator else 1
        self._replicas_here = strategy.num_replicas_in_sync // self._processes
        self._batching = Batching(
            feature_names,
            job.transform,
            training.batch_size_per_replica,
            self._replicas_here,
            static_shapes,
        )
        self._training = training
        self._train_files = job.train_files
        self._collective = collective
        self.train = Split.find(job.train_files, collective)
        self.evaluation = Split.find(job.eval_files, collective)
        for split, patterns in ((self.train, job.train_files), (self.evaluation, job.eval_files)):
            if not split.examples:
                raise ValueError(f"no Example in {', '.join(patterns)}: nothing to train on")
        self.global_batch = training.batch_size_per_replica * strategy.num_replicas_in_sync
        """Examples a step, over all replicas."""
        self.steps = self._steps(self.train)
        self.eval_steps = self._steps(self.evaluation)

    def train_dataset(self, first_step: int) -> Any:
        """Return the train split, endless and shuffled, from `first_step` on; for both loops."""
        return self._distributed(
            self.train, first_step, shuffle_buffer=self._training.shuffle_buffer
        )

    def eval_dataset(self) -> Any:
        """Return the eval split, endless and in order."""
        return self._distributed(self.evaluation, 0, shuffle_buffer=0)

    def parse_on_worker(self, batch: Any) -> Any:
        """Parse a batch that the coordinator has sent, on a worker."""
        return self._batching.parse_on_worker(batch)

    def adapt_dataset(self) -> tf.data.Dataset:
        """Return one pass over this process's share of the train split, in large batches."""
        batching = Batching(self._batching.names, self._batching.transform, _ADAPT_BATCH)
        share = self.train.shares(self._collective.processes)[self._collective.process]
        return make_dataset(share, batching)

    def stored_ngram_counts(self) -> np.ndarray | None:
        """Return the counts that Transform stored for the train split, int64 [2, buckets].

        Returns None in all processes if one of them finds no counts.
        """
        buckets = self._batching.transform.ngram_buckets
        found = ngram_counts.read(self._train_files, buckets)
        return None if self._collective.any(found is None) else found

    def _steps(self, split: Split) -> int:
        largest = max(share.examples for share in split.shares(self._processes))
        return math.ceil(self._batching.batches(largest) / self._replicas_here)

    def _distributed(self, split: Split, first_step: int, *, shuffle_buffer: int) -> Any:
        def of_process(process: int, processes: int) -> tf.data.Dataset:
            share = split.shares(processes)[process]
            return endless(
                share,
                self._batching,
                self._steps(split) * self._replicas_here,
                shuffle_buffer=shuffle_buffer,
                seed=self._training.seed,
                cache=self._training.cache_input,
                done=first_step * self._replicas_here,
                parse=not self._by_coordinator,
            )

        if self._by_coordinator:
            return of_process(0, 1)
        return self._strategy.distribute_datasets_from_function(
            lambda context: of_process(context.input_pipeline_id, context.num_input_pipelines)
        )
