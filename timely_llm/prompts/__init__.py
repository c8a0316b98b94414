"""What the model is told: templates and examples. Pure."""
