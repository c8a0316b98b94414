"""The planner's services: requests become events, answers of the core become responses."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from rclpy.exceptions import InvalidNamespaceException
from rclpy.node import Node
from rclpy.task import Future
from rclpy.validate_namespace import validate_namespace

from timely_llm import srv
from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode, RobotInfo
from timely_llm.ros.conversions import instance_from_ros, instance_to_ros, to_ros
from timely_llm.ros.qos import BURST
from timely_llm.ros.robot_link import RobotLinks

Answer = ev.Registered | ev.Answered | ev.Probed
Then = Callable[[Answer], None]


class Services:
    """``put`` takes an event to the planner and says whether there is one. All of this runs in the
    executor's thread. ``instance`` is the planner's; ``robots`` those that it knows."""

    def __init__(
        self, node: Node, put: Callable[[ev.Event], bool], robot_links: RobotLinks, instance: str
    ) -> None:
        self.instance = instance
        self.robots: tuple[RobotInfo, ...] = ()
        self._log = node.get_logger()
        self._put, self._robot_links = put, robot_links
        self._tickets = itertools.count(1)
        self._open: dict[int, tuple[Future, Then]] = {}
        self._node, self._admitting = node, False
        node.create_service(
            srv.UnregisterRobot, "unregister_robot", self._unregister, qos_profile=BURST
        )
        node.create_service(srv.ListRobots, "list_robots", self._list, qos_profile=BURST)
        node.create_service(srv.StopRobot, "stop_robot", self._stop, qos_profile=BURST)
        node.create_service(srv.Probe, "probe", self._probe, qos_profile=BURST)

    def admit_robots(self) -> None:
        """From now on robots find the service that registers them. While a model is being loaded
        nobody would answer: their requests would pile up, and each ends the session before."""
        if not self._admitting:
            self._admitting = True
            self._node.create_service(
                srv.RegisterRobot, "register_robot", self._register, qos_profile=BURST
            )

    def answer(self, answer: Answer) -> None:
        """The planner has answered. What follows for the topics is done here, in the order of the
        answers: who waits for them goes on in any order."""
        future, then = self._open.pop(answer.ticket)
        if answer.code is ErrorCode.NONE:
            then(answer)
        future.set_result(answer)

    def abandon(self, words: str) -> None:
        """The planner has ended: whoever still waits is told so."""
        for ticket in tuple(self._open):
            self.answer(ev.Answered(ticket, ErrorCode.PLANNER_INACTIVE, words))

    def _ask(self, make: Callable[[int], ev.Event], then: Then = lambda answer: None) -> Future:
        """Put an event that is answered; the future gets the answer, and before it ``then``, if it
        is no refusal."""
        ticket, future = next(self._tickets), Future()
        self._open[ticket] = future, then
        if not self._put(make(ticket)):
            self.abandon("the planner is not configured")
        return future

    async def _register(
        self, request: srv.RegisterRobot.Request, response: srv.RegisterRobot.Response
    ) -> srv.RegisterRobot.Response:
        namespace = request.robot_namespace or f"/{request.robot_id}"
        try:
            validate_namespace(namespace)
        except InvalidNamespaceException as error:
            response.error_code = int(ErrorCode.INVALID_GOAL)
            response.error_msg = f"robot_namespace {namespace!r}: {error}".replace("\n", " ")
            return response
        if not any(request.instance):
            response.error_code = int(ErrorCode.INVALID_GOAL)
            response.error_msg = "instance: must be 16 random bytes, not zeros: it tells a restart"
            return response
        answer = await self._ask(
            lambda ticket: ev.RegisterRobot(
                ticket,
                request.robot_id,
                request.kind,
                request.skill_set,
                namespace,
                instance_from_ros(request.instance),
            ),
            lambda answer: self._robot_links.open(request.robot_id, namespace, answer.session),
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        response.planner_instance = instance_to_ros(self.instance)
        if answer.code is ErrorCode.NONE:
            response.session = answer.session
            self._log.info(f"robot {request.robot_id!r} registered")
        else:
            self._log.warning(f"robot {request.robot_id!r} refused: {answer.error}")
        return response

    async def _unregister(
        self, request: srv.UnregisterRobot.Request, response: srv.UnregisterRobot.Response
    ) -> srv.UnregisterRobot.Response:
        answer = await self._ask(
            lambda ticket: ev.UnregisterRobot(ticket, request.robot_id, request.session),
            lambda answer: self._robot_links.close(request.robot_id),
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        if answer.code is ErrorCode.NONE:
            self._log.info(f"robot {request.robot_id!r} unregistered")
        return response

    async def _stop(
        self, request: srv.StopRobot.Request, response: srv.StopRobot.Response
    ) -> srv.StopRobot.Response:
        answer = await self._ask(lambda ticket: ev.StopRobots(ticket, request.robot_id))
        response.error_code, response.error_msg = int(answer.code), answer.error
        response.stopped = list(answer.robots)
        return response

    async def _probe(
        self, request: srv.Probe.Request, response: srv.Probe.Response
    ) -> srv.Probe.Response:
        answer = await self._ask(
            lambda ticket: ev.AskProbe(
                ticket,
                request.robot_id,
                request.session,
                request.question,
                request.scene,
                request.timeout,
            )
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        if answer.code is ErrorCode.NONE:
            response.answer = answer.answer
        return response

    def _list(
        self, request: srv.ListRobots.Request, response: srv.ListRobots.Response
    ) -> srv.ListRobots.Response:
        response.instance = instance_to_ros(self.instance)
        response.robots = [to_ros(robot) for robot in self.robots]
        return response
