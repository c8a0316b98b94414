"""Neuromeka Indy7 arms, and a simulated controller of the same services, served by gRPC."""
