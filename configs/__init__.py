"""One file per claim or recipe, and the scales."""
