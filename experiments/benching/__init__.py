"""What `experiments.bench` times, one figure a file."""
