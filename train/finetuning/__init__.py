"""Fine-tuning of encoders on downstream tasks: config and grids, step, loop, predictions."""
