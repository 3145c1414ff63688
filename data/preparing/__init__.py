"""The steps that make a token store, each a function of a task that leaves files, and who carries them out."""
