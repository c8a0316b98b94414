"""The live view of a running fleet: its state, followed from messages (fleet_state), and the views
on it: JSON (view), a terminal, a web page (server), Prometheus (prometheus), sums (summary)."""
