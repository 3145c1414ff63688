"""Text to documents to tokens to rows to batches. Knows nothing of JAX devices."""
