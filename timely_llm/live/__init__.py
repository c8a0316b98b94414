"""The live view of a running fleet: what is known (board), what is shown of it (view), its figures
for Prometheus (metrics) and the web page (page, server)."""
