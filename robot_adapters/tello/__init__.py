"""Ryze Tello drones on djitellopy, and a simulated one that speaks the same protocol (``sim*``)."""
