"""Ryze Tello drones on djitellopy, and a simulated drone that speaks the same protocol."""
