"""SigningPusher: TFX's Pusher, with a signature in each pushed model."""
