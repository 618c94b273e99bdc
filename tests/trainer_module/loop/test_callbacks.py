"""The callback that reports the progress."""

from trainer_module.loop.callbacks import StepProgress


def epoch(callback, number, batches):
    for batch in batches:
        callback.on_train_batch_end(batch, {"loss": 0.5})
    callback.on_epoch_end(number, {"loss": 0.5})


def test_progress_is_reported_twenty_times_an_epoch_and_at_the_end(reported):
    callback = StepProgress(41, 2)
    for number in range(2):
        epoch(callback, number, range(41))
    assert {(each["unit"], each["total"]) for each in reported} == {("steps", 82)}
    assert [each["done"] for each in reported] == list(range(2, 83, 2))
    epoch(StepProgress(41, 1), 0, range(41))
    assert [each["done"] for each in reported[-2:]] == [40, 41], "although 40 was reported"
