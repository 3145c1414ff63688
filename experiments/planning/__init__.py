"""What a config costs on a TPU slice, found by compiling its train steps for it; no TPU is needed."""
