"""A command on a Cloud TPU slice: made, filled, run, watched, made again after a preemption, emptied and deleted."""
