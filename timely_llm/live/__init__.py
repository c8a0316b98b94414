"""The live view of a running fleet: its state, followed from messages (fleet_state), and the views
on it: as JSON (view), on a terminal, on a web page (server), for Prometheus (metrics), in sums."""
