"""The gRPC edge of the simulated Indy7: the SDK's own servicers and a clock around
``simulated_controller.py``.

A controller is served at an address of its own, on the four ports that clients use.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import json_format
from neuromeka.proto import common_msgs_pb2 as common
from neuromeka.proto import (
    config_msgs_pb2,
    config_pb2_grpc,
    control_pb2_grpc,
    device_pb2_grpc,
    rtde_pb2_grpc,
)
from neuromeka.proto import control_msgs_pb2 as control
from neuromeka.proto import device_msgs_pb2 as device
from neuromeka.proto import rtde_msgs_pb2 as rtde

from robot_adapters.indy7.kinematics import HOME, Unreachable, joints_for, tool
from robot_adapters.indy7.simulated_controller import OK, REFUSED, Reply, SimIndy

CONTROL, DEVICE, CONFIG, RTDE = 20001, 20002, 20003, 20004
WORD = "sim "  # a program of this name is a fault that is asked for
_THREADS = 32  # of a server; calls that are not answered occupy one each
Tell = Callable[[str, float, str, str], None]


class Controller:
    """One arm with the clock and the lock that its servicers share."""

    def __init__(self, host: str, arm: SimIndy, now: Callable[[], float], factor: float) -> None:
        self.host, self.arm, self.now = host, arm, now
        self._factor = factor
        self.lock = threading.Lock()  # held while the arm changes
        self.closed = threading.Event()

    def serve(self, context: Any, act: Callable[[float], Any], *mutes: str) -> Any:
        """Carry out a call, unless a fault keeps it from the arm; answer it, unless one keeps the
        answer back. ``mutes`` are further faults that do."""
        with self.lock:
            now = self.now()
            self.arm.hear(now)
            lost, deaf = self.arm.lost(now), "deaf" in mutes and self.arm.faults.take("deaf")
            late = self.arm.faults.take("late") if "late" in mutes and not lost else None
        if late is not None:
            self.closed.wait(late.value / self._factor)
        if not lost and not deaf:
            with self.lock:
                now = self.now()
                answer = act(now)
                muted = self.arm.silent(now) or ("mute" in mutes and self.arm.faults.take("mute"))
            if not muted:
                return answer
        self._say_nothing(context)

    def _say_nothing(self, context: Any) -> None:
        """Until the client has given up."""
        over = threading.Event()
        if context.add_callback(over.set):
            while not self.closed.is_set() and not over.wait(0.2):
                pass
        context.abort(grpc.StatusCode.CANCELLED, "nobody waits for it")


def _response(reply: Reply) -> Any:
    return common.Response(code=reply[0], msg=reply[1])


class _Service:
    """What is not among its methods is answered as unknown."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._arm, self._serve = controller, controller.arm, controller.serve


class Control(_Service, control_pb2_grpc.ControlServicer):
    """Motions."""

    def MoveJ(self, request: Any, context: Any) -> Any:
        given = {"speed": request.vel_ratio, "acceleration": request.acc_ratio}
        return self._move("joint", request.target.j_target, request, context, given)

    def MoveJT(self, request: Any, context: Any) -> Any:
        given = {"time": request.time}
        return self._move("joint", request.target.j_target, request, context, given)

    def MoveL(self, request: Any, context: Any) -> Any:
        given = {"speed": request.vel_ratio, "acceleration": request.acc_ratio}
        return self._move("line", request.target.t_target, request, context, given)

    def MoveLT(self, request: Any, context: Any) -> Any:
        given = {"time": request.time}
        return self._move("line", request.target.t_target, request, context, given)

    def _move(
        self, kind: str, goal: Any, request: Any, context: Any, given: dict[str, float]
    ) -> Any:
        relative = request.target.base_type != 0

        def move(now: float) -> Any:
            return _response(self._arm.move(kind, list(goal), now, relative=relative, **given))

        return self._serve(context, move, "late", "mute")

    def StopMotion(self, request: Any, context: Any) -> Any:
        stop = lambda now: _response(self._arm.stop(request.category, now))  # noqa: E731
        return self._serve(context, stop, "deaf")

    def Recover(self, request: Any, context: Any) -> Any:
        return self._serve(context, lambda now: _response(self._arm.recover(now)))

    def InverseKinematics(self, request: Any, context: Any) -> Any:
        def solve(now: float) -> Any:
            try:
                joints = joints_for(list(request.tpos), list(request.init_jpos))
            except Unreachable as reason:
                words = f"inverse kinematics failed: {reason}"
                return control.InverseKinematicsRes(response=_response((REFUSED, words)))
            return control.InverseKinematicsRes(jpos=joints, response=_response((OK, "")))

        return self._serve(context, solve)

    def ForwardKinematics(self, request: Any, context: Any) -> Any:
        answer = control.ForwardKinematicsRes(tpos=tool(list(request.jpos)))
        return self._serve(context, lambda now: answer)

    def PlayProgram(self, request: Any, context: Any) -> Any:
        """``sim FAULT`` asks for a fault, even while the link is lost; there are no programs."""
        name = request.prog_name
        if not name.startswith(WORD):
            return _response((REFUSED, f"there is no program {name!r}"))
        with self._controller.lock:
            return _response(self._arm.ask(name.removeprefix(WORD), self._controller.now()))


class Device(_Service, device_pb2_grpc.DeviceServicer):
    """Outputs, inputs, tools, gripper."""

    def SetDO(self, request: Any, context: Any) -> Any:
        signals = [(signal.address, signal.state) for signal in request.signals]
        return self._operate("set_do", {"do_signal_list": signals}, context)

    def SetEndDO(self, request: Any, context: Any) -> Any:
        signals = [(signal.port, list(signal.states)) for signal in request.signals]
        return self._operate("set_endtool_do", {"end_do_signal_list": signals}, context)

    def ExecuteTool(self, request: Any, context: Any) -> Any:
        return self._operate("execute_tool", {"name": request.name}, context)

    def SetGripperCommand(self, request: Any, context: Any) -> Any:
        given = {
            "command": request.gripper_command,
            "gripper_type": request.gripper_type,
            "pvt_data": list(request.gripper_pvt_data),
        }
        return self._operate("set_gripper_command", given, context)

    def _operate(self, method: str, arguments: dict[str, Any], context: Any) -> Any:
        act = lambda now: _response(self._arm.operate(method, arguments, now))  # noqa: E731
        return self._serve(context, act)

    def GetDI(self, request: Any, context: Any) -> Any:
        return self._serve(context, lambda now: _signals(self._arm.inputs()))

    def GetDO(self, request: Any, context: Any) -> Any:
        return self._serve(context, lambda now: _signals(self._arm.outputs))

    def GetDeviceInfo(self, request: Any, context: Any) -> Any:
        info = device.DeviceInfo(num_joints=6, robot_dof=6, robot_name="Indy7 (simulated)")
        return self._serve(context, lambda now: info)


def _signals(states: dict[int, int]) -> Any:
    signals = [device.DigitalSignal(address=a, state=s) for a, s in sorted(states.items())]
    return device.DigitalList(signals=signals)


class Config(_Service, config_pb2_grpc.ConfigServicer):
    """Where the arm is at home."""

    def GetHomePosition(self, request: Any, context: Any) -> Any:
        return self._serve(context, lambda now: config_msgs_pb2.JointPos(jpos=HOME))


class RealTimeData(_Service, rtde_pb2_grpc.RTDataExchangeServicer):
    """What the controller tells of itself."""

    def GetControlData(self, request: Any, context: Any) -> Any:
        def tell(now: float) -> Any:
            return rtde.ControlData(op_state=self._arm.state(now), q=self._arm.told(now),
                                    p=tool(self._arm.joints(now)), sim_mode=True,
                                    is_robot_connected=True)  # fmt: skip

        return self._serve(context, tell)

    def GetMotionData(self, request: Any, context: Any) -> Any:
        def tell(now: float) -> Any:
            return json_format.ParseDict(self._arm.motion(now), rtde.MotionData())

        return self._serve(context, tell)

    def GetViolationData(self, request: Any, context: Any) -> Any:
        def tell(now: float) -> Any:
            code, joint, words = self._arm.violation
            return rtde.ViolationData(violation_code=code, j_index=joint, violation_str=words)

        return self._serve(context, tell)


_SERVICES = (
    (CONTROL, control_pb2_grpc.add_ControlServicer_to_server, Control),
    (DEVICE, device_pb2_grpc.add_DeviceServicer_to_server, Device),
    (CONFIG, config_pb2_grpc.add_ConfigServicer_to_server, Config),
    (RTDE, rtde_pb2_grpc.add_RTDataExchangeServicer_to_server, RealTimeData),
)


class IndySimulator:
    """Controllers on 127.0.0.x, served in threads. ``factor`` is how much faster than the clock
    their time runs. ``OSError`` where an address is taken. Use it in a ``with``."""

    def __init__(self, arms: Sequence[tuple[str, SimIndy]], factor: float = 1.0) -> None:
        self._factor, self._began = factor, time.monotonic()
        self.controllers = [Controller(host, arm, self.now, factor) for host, arm in arms]
        self._servers: list[Any] = []
        try:
            for controller in self.controllers:
                self._open(controller)
        except OSError:
            self.close()
            raise

    def _open(self, controller: Controller) -> None:
        for port, add, servicer in _SERVICES:
            server = grpc.server(ThreadPoolExecutor(_THREADS), options=(("grpc.so_reuseport", 0),))
            add(servicer(controller), server)
            address = f"{controller.host}:{port}"
            try:
                bound = server.add_insecure_port(address)
            except RuntimeError:
                bound = 0
            if not bound:
                raise OSError(f"{address}: cannot be bound: is a simulation running?")
            server.start()
            self._servers.append(server)

    def now(self) -> float:
        """The arms' clock in s."""
        return (time.monotonic() - self._began) * self._factor

    def run(self, tell: Tell, period: float = 0.1) -> None:
        """Tell every entry of the arms' logs until ``close``."""
        while not self.controllers[0].closed.wait(period):
            for controller in self.controllers:
                with controller.lock:
                    controller.arm.advance(self.now())
                    while controller.arm.log:
                        tell(controller.host, *controller.arm.log.popleft())

    def __enter__(self) -> IndySimulator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; calls that are not answered end with an error."""
        for controller in self.controllers:
            controller.closed.set()
        for server in self._servers:
            server.stop(0).wait(2.0)
