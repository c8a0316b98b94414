"""What `timely-llm` does on the command line: edges, all of it."""
