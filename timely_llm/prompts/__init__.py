"""What the model reads: templates, examples, and the history of failed plans. Pure."""
