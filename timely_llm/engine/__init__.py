"""Language model engines behind one protocol: see ``base.py``."""
