"""What a model is trained to do: one file for each objective; `objective.py` says what it has to give."""
