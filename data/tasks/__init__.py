"""Downstream tasks: their data, features, batches, scores and files. Nothing here knows of JAX."""
