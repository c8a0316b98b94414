"""An example of an adapter of your own: a rover on ``cmd_vel`` and ``odom`` (docs/your_robot.md).

It moves on fresh odometry only: each message that comes is answered by a velocity, and where none
comes the call fails, which halts the robot.
"""

import math

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data

from robot_adapters.adapter import Adapter, AdapterParameter, Progress

SENSES = {"move_forward": 1, "move_backward": -1, "turn_ccw": 1, "turn_cw": -1}


class RoverAdapter(Adapter):
    PARAMETERS = (
        AdapterParameter("speed", 0.3, "of driving", "m/s", 0.01, 2.0),
        AdapterParameter("turn_speed", 0.6, "of turning", "rad/s", 0.01, 4.0),
        AdapterParameter("odometry_timeout", 0.5, "older odometry fails a call", "s", 0.05, 10.0),
    )

    def __init__(self, robot_id, skills, *, speed, turn_speed, odometry_timeout):
        self.skills, self._timeout = skills, odometry_timeout
        self._speed, self._turn_speed = speed, turn_speed
        self._pose = None  # x and y in m, yaw in rad, which counts on beyond a full turn
        self._call, self._last = None, Progress(True)

    def attach(self, node):  # topics of its own, on the robot's node and in its namespace
        self._velocity = node.create_publisher(Twist, "cmd_vel", 10)
        node.create_subscription(Odometry, "odom", self._on_odometry, qos_profile_sensor_data)

    def _on_odometry(self, message):
        at, q = message.pose.pose.position, message.pose.pose.orientation
        yaw = math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y**2 + q.z**2))
        if not all(map(math.isfinite, (at.x, at.y, yaw))):
            return  # as if none had come
        before = self._pose[2] if self._pose else yaw
        self._pose = at.x, at.y, before + math.remainder(yaw - before, math.tau)
        self._fresh = True

    def check(self, call):  # why it must not be done from here, or None
        if self._pose is None:
            return "no odometry has come yet"
        (x, y, yaw), way = self._pose, self.travel(call) * SENSES[self._action(call)]
        end = (x + way * math.cos(yaw), y + way * math.sin(yaw))
        fence = self.skills.bounds.geofence or ()
        for axis, value, (low, high) in zip("xy", end, fence, strict=False):
            if not low <= value <= high:
                return f"{axis} would be {value:.2f} m: geofence is {low:g} to {high:g} m"

    def travel(self, call):  # m, for max_travel
        return int(call.evaluated[0]) / 100 if self._action(call).startswith("move") else 0.0

    def start(self, call, now):  # it begins where the next odometry says that it is
        self._call, self._began, self._heard = call, now, now
        self._from, self._fresh = None, False

    def poll(self, now):
        if self._call is None:
            return self._last
        elapsed = now - self._began
        if self._fresh:
            self._fresh, self._heard, self._from = False, now, self._from or self._pose
            if not self._go_on(self._from, self._pose, int(self._call.evaluated[0])):
                self.halt(now)
                self._last = Progress(True, elapsed=elapsed)
                return self._last
        elif now - self._heard > self._timeout:
            return Progress(True, error=f"no odometry for {now - self._heard:.2f} s")
        return Progress(False, elapsed=elapsed, remaining=self._call.expected_duration - elapsed)

    def _go_on(self, start, now, amount):  # drive or turn, while some cm or degrees are left
        (x0, y0, yaw0), (x, y, yaw) = start, now
        sense = SENSES[self._action(self._call)]
        if self._action(self._call).startswith("turn"):
            self._drive(0.0, sense * self._turn_speed)
            return sense * (yaw - yaw0) < math.radians(amount)
        self._drive(sense * self._speed, 0.0)
        return sense * ((x - x0) * math.cos(yaw0) + (y - y0) * math.sin(yaw0)) < amount / 100

    def next_poll(self, now):  # look again every 20 ms while a call is in progress
        return now + 0.02 if self._call else None

    def halt(self, now):
        self._call, self._last = None, Progress(True)
        self._drive(0.0, 0.0)

    hold = halt  # a rover that stands is safe

    def diagnostics(self):
        return {"pose": "x {:.2f} y {:.2f} yaw {:.2f}".format(*self._pose or [math.nan] * 3)}

    def _action(self, call):
        return self.skills[call.name].long_name

    def _drive(self, linear, angular):
        message = Twist()
        message.linear.x, message.angular.z = linear, angular
        self._velocity.publish(message)
