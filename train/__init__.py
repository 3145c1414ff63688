"""Masking, objectives, optimizer, the step, checkpoints, the loop, evaluation."""
