"""The state machine of an arm in virtual time, and the data that a controller tells."""

from __future__ import annotations

from robot_adapters.indy7.arm import LOOK_BUSY, LOOK_IDLE, Arm, JointMove, Settings

HOME, THERE = (0.0,) * 6, (10.0, 0.0, 0.0, 0.0, 0.0, 0.0)
OK = {"code": "0", "msg": ""}


def data(joints=HOME, op_state=5, moving=False, reached=True, words="", queued=0):
    return {
        "robot": {"op_state": op_state, "q": list(joints), "p": list(joints)},
        "motion": {
            "is_in_motion": moving, "is_stopping": False, "is_target_reached": reached,
            "motion_queue_size": queued,
        },
        "violation": {"violation_str": words},
    }  # fmt: skip


class Bench:
    """An arm in virtual time; what it asks is kept until it is answered."""

    def __init__(self, **settings):
        self.arm, self.now = Arm(Settings(**settings)), 0.0
        self.asked = []  # (time, method), of all but looks
        self.open = []
        self.look()

    def collect(self):
        for request in self.arm.requests:
            if request.method != "look":
                self.asked.append((round(self.now, 3), request.method))
            self.open.append(request)
        self.arm.requests.clear()

    def tick(self, passed=0.0):
        self.now += passed
        self.arm.tick(self.now)
        self.collect()

    def answer(self, method, answer=OK, error="", after=0.01):
        """To the oldest request of that method."""
        request = next(request for request in self.open if request.method == method)
        self.open.remove(request)
        self.now += after
        self.arm.on_answer(request.number, answer, error, self.now)
        self.collect()

    def look(self, passed=LOOK_IDLE, **what):
        """A look from now on; one that was on its way is lost."""
        if any(request.method == "look" for request in self.open):
            self.answer("look", None, "lost", after=0.0)
        self.tick(passed)
        if not any(request.method == "look" for request in self.open):
            self.tick(LOOK_IDLE)
        self.answer("look", data(**what))

    def stand(self, **what):
        """Two looks that tell the same."""
        for _ in range(2):
            self.look(LOOK_BUSY, **what)

    def begin(self, *steps):
        self.arm.begin(lambda look: list(steps), self.now)
        self.collect()
        self.look(0.0)

    @property
    def methods(self):
        return [method for _, method in self.asked]


def moving(**settings):
    """An arm in the middle of a joint move."""
    bench = Bench(**settings)
    bench.begin(JointMove(THERE))
    bench.answer("movej")
    bench.look(LOOK_BUSY, joints=(5.0, *HOME[1:]), op_state=6, moving=True, reached=False)
    return bench
