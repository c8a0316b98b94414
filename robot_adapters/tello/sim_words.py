"""What a simulated Tello tells of itself: its state line, and answers to reading commands. Pure."""

from __future__ import annotations

import math

from robot_adapters.tello.sim_motion import Pose


def state_line(
    pose: Pose, velocity: tuple[float, float, float], battery: float, in_flight: float
) -> str:
    """The line of the state stream (SDK 2.0, Tello State). The drone counts yaw clockwise."""
    yaw = -round((pose.yaw + 180) % 360 - 180)
    vx, vy, vz = (round(10 * speed) for speed in velocity)
    fields = {
        "mid": -1, "x": -100, "y": -100, "z": -100, "mpry": "0,0,0",
        "pitch": 0, "roll": 0, "yaw": yaw, "vgx": vx, "vgy": vy, "vgz": vz,
        "templ": 60, "temph": 63, "tof": max(10, round(100 * pose.z)),
        "h": round(pose.z * 10) * 10, "bat": math.floor(battery), "baro": f"{100 + pose.z:.2f}",
        "time": int(in_flight), "agx": "0.00", "agy": "0.00", "agz": "-1000.00",
    }  # fmt: skip
    return "".join(f"{name}:{value};" for name, value in fields.items()) + "\r\n"


def readings(pose: Pose, battery: float, speed: int, in_flight: float, seed: int) -> dict[str, str]:
    """Answers by command."""
    yaw = -round((pose.yaw + 180) % 360 - 180)
    return {
        "battery?": f"{math.floor(battery)}",
        "speed?": f"{speed:.1f}",
        "time?": f"{int(in_flight)}s",
        "height?": f"{round(pose.z * 10)}dm",
        "temp?": "60~63C",
        "attitude?": f"pitch:0;roll:0;yaw:{yaw};",
        "baro?": f"{100 + pose.z:.2f}",
        "tof?": f"{max(100, round(1000 * pose.z))}mm",
        "wifi?": "90",
        "sdk?": "20",
        "sn?": f"0TQSIM{seed:08d}",
    }
