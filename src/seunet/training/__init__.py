"""Training: config, recipe, checkpoint, loop."""
