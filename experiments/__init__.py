"""What people run: one module per command."""
