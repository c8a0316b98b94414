"""The planner's services: requests become events, answers of the core become responses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from timely_llm import srv
from timely_llm.core import events as ev
from timely_llm.protocols.messages import LONGEST_WORDS, ErrorCode, RobotInfo, head
from timely_llm.ros.conversions import check, instance_from_ros, instance_to_ros, to_ros
from timely_llm.ros.qos import BURST
from timely_llm.ros.robot_link import RobotLinks, check_namespace
from timely_llm.validation.outgoing import visible

MOST_OPEN = 1000  # requests that may wait for the planner
NOT_DONE = "the planner could not do what follows from it"
Answer = ev.Registered | ev.Answered | ev.Probed
Then = Callable[[Answer], None]


class Services:
    """``put`` takes an event to the planner and says whether there is one. All of this runs in the
    executor's thread. ``instance`` is the planner's; ``robots`` those that it knows."""

    def __init__(
        self, node: Node, put: Callable[[ev.Event], bool], links: RobotLinks, instance: str
    ) -> None:
        self.instance = instance
        self.robots: tuple[RobotInfo, ...] = ()
        self._node, self._put, self._links = node, put, links
        self._log = node.get_logger()
        self._tickets = itertools.count(1)
        self._open: dict[int, tuple[Future[Answer], Then]] = {}
        self._admitting = False
        self._serve(srv.UnregisterRobot, "unregister_robot", self._unregister)
        self._serve(srv.ListRobots, "list_robots", self._list)
        self._serve(srv.StopRobot, "stop_robot", self._stop)
        self._serve(srv.Probe, "probe", self._probe)

    def admit_robots(self) -> None:
        """From now on robots find the service that registers them. While a model is being loaded
        nobody would answer: their requests would pile up, and each ends the session before."""
        if not self._admitting:
            self._admitting = True
            self._serve(srv.RegisterRobot, "register_robot", self._register)

    def answer(self, answer: Answer) -> None:
        """The planner has answered. What follows for the topics is done here, in the order of the
        answers: whoever waits for them continues in any order."""
        future, then = self._open.pop(answer.ticket)
        try:
            if answer.code is ErrorCode.NONE:
                then(answer)
        except Exception as error:
            answer = ev.Answered(answer.ticket, ErrorCode.ENGINE_FAILED, f"{NOT_DONE}: {error}")
            raise
        finally:
            future.set_result(answer)

    def abandon(self, words: str) -> None:
        """The planner has ended: refuse whoever still waits, with these words."""
        for ticket in tuple(self._open):
            self.answer(ev.Answered(ticket, ErrorCode.PLANNER_INACTIVE, words))

    def _serve(self, kind: Any, name: str, respond: Callable[[Any, Any], Any]) -> None:
        async def checked(request: Any, response: Any) -> Any:
            try:
                check(request)
            except ValueError as error:
                response.error_code, response.error_msg = int(ErrorCode.INVALID_GOAL), str(error)
                return response
            return await respond(request, response)

        self._node.create_service(kind, name, checked, qos_profile=BURST)

    async def _ask(
        self, response: Any, make: Callable[[int], ev.Event], then: Then = lambda answer: None
    ) -> Answer:
        """The planner's answer to the event of a ticket; its code and words are in ``response``.
        ``then`` gets it first, unless it is a refusal."""
        if len(self._open) >= MOST_OPEN:
            words = f"{MOST_OPEN} requests wait for the planner: at most {MOST_OPEN}"
            response.error_code, response.error_msg = int(ErrorCode.OVERLOADED), words
            return ev.Answered(0, ErrorCode.OVERLOADED, words)
        ticket, future = next(self._tickets), Future[Answer]()
        self._open[ticket] = future, then
        if not self._put(make(ticket)):
            self.abandon("the planner is not configured")
        answer = await future
        assert answer is not None
        answer = replace(answer, error=head(answer.error, LONGEST_WORDS))
        response.error_code, response.error_msg = int(answer.code), answer.error
        return answer

    async def _register(
        self, request: srv.RegisterRobot.Request, response: srv.RegisterRobot.Response
    ) -> srv.RegisterRobot.Response:
        namespace = request.robot_namespace or f"/{request.robot_id}"
        if fault := _fault(namespace, request.instance):
            response.error_code, response.error_msg = int(ErrorCode.INVALID_GOAL), fault
            return response

        def open_link(answer: Answer) -> None:
            assert isinstance(answer, ev.Registered)
            response.session = answer.session
            self._links.open(request.robot_id, namespace, answer.session)

        instance = instance_from_ros(request.instance)
        answer = await self._ask(
            response,
            lambda ticket: ev.RegisterRobot(
                ticket, request.robot_id, request.kind, request.skill_set, namespace, instance
            ),
            open_link,
        )
        response.planner_instance = instance_to_ros(self.instance)
        if answer.code is ErrorCode.NONE:
            self._log.info(f"robot {request.robot_id!r} registered")
            if answer.error:
                self._log.warning(f"robot {request.robot_id!r}: {answer.error}")
        else:
            self._log.warning(f"robot {request.robot_id!r} refused: {visible(answer.error)}")
        return response

    async def _unregister(
        self, request: srv.UnregisterRobot.Request, response: srv.UnregisterRobot.Response
    ) -> srv.UnregisterRobot.Response:
        answer = await self._ask(
            response,
            lambda ticket: ev.UnregisterRobot(ticket, request.robot_id, request.session),
            lambda answer: self._links.close(request.robot_id),
        )
        if answer.code is ErrorCode.NONE:
            self._log.info(f"robot {request.robot_id!r} unregistered")
        return response

    async def _stop(
        self, request: srv.StopRobot.Request, response: srv.StopRobot.Response
    ) -> srv.StopRobot.Response:
        answer = await self._ask(response, lambda ticket: ev.StopRobots(ticket, request.robot_id))
        if isinstance(answer, ev.Answered):
            response.stopped = list(answer.robots)
        return response

    async def _probe(
        self, request: srv.Probe.Request, response: srv.Probe.Response
    ) -> srv.Probe.Response:
        answer = await self._ask(
            response,
            lambda ticket: ev.AskProbe(
                ticket,
                request.robot_id,
                request.session,
                request.question,
                request.scene,
                request.timeout,
            ),
        )
        if isinstance(answer, ev.Probed) and answer.code is ErrorCode.NONE:
            response.answer = answer.answer
        return response

    async def _list(
        self, request: srv.ListRobots.Request, response: srv.ListRobots.Response
    ) -> srv.ListRobots.Response:
        response.instance = instance_to_ros(self.instance)
        response.robots = [to_ros(robot) for robot in self.robots]
        return response


def _fault(namespace: str, instance: bytes) -> str:
    """What is wrong with a registration itself; empty: nothing."""
    try:
        check_namespace(namespace)
    except ValueError as error:
        return str(error)
    if not any(instance):
        return "instance: must be 16 random bytes, not zeros: it tells a restart"
    return ""
