"""Encoders and heads: pure functions of (parameters, arrays). Knows nothing of training."""
