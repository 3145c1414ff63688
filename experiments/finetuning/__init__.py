"""What `experiments.finetune` and `experiments.predict` do."""
