"""Neuromeka Indy7 arms on neuromeka, and a simulated controller of the same services (``sim*``)."""
