"""Language model engines behind one protocol (``protocols/engine.py``); ``factory`` builds them."""
