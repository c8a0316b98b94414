"""The ``plan`` action: goals in, feedback and results out. Every goal is accepted in milliseconds
and ends with a result; what becomes of it is decided in the planner's core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.task import Future

from timely_llm.action import Plan
from timely_llm.core import events as ev
from timely_llm.protocols import messages as values
from timely_llm.ros.conversions import from_ros, to_ros, uuid_from_ros
from timely_llm.ros.qos import BURST

RESULT_TIMEOUT = 60  # s that a result is kept for a client that asks late
MOST_ASKS = 1000  # for the result of one goal that are answered at its end
MOST_GOALS = 10_000  # with those whose result is kept; more are rejected


class PlanServer:
    """``put`` takes an event to the planner and says whether there is one. All of this runs in the
    executor's thread."""

    def __init__(self, node: Node, put: Callable[[ev.Event], bool]) -> None:
        self._put = put
        self._goals: dict[str, tuple[ServerGoalHandle, Future[values.PlanResult]]] = {}
        self._server = _Server(
            node,
            Plan,
            "plan",
            self._execute,
            goal_callback=self._asked,
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,
            goal_service_qos_profile=BURST,
            result_service_qos_profile=BURST,
            cancel_service_qos_profile=BURST,
            feedback_pub_qos_profile=BURST,
            result_timeout=RESULT_TIMEOUT,
        )

    def when_fetched(self, then: Callable[[], None]) -> None:
        """Call ``then`` once every result there is was asked for by its client: the answer follows
        at once. Until then the node must not leave."""
        self._server.when_asked(then)

    @property
    def live(self) -> tuple[tuple[str, str], ...]:
        """Plan id and robot id of the goals that have no result yet."""
        return tuple((name, handle.request.robot_id) for name, (handle, _) in self._goals.items())

    def feedback(self, feedback: values.PlanFeedback) -> None:
        """Publish how far the goal is."""
        if feedback.plan_id in self._goals:
            self._goals[feedback.plan_id][0].publish_feedback(to_ros(feedback))

    def end(self, result: values.PlanResult) -> None:
        """Give the goal its result."""
        if result.plan_id in self._goals:
            future = self._goals[result.plan_id][1]
            if not future.done():
                future.set_result(result)

    def _asked(self, request: Plan.Goal) -> GoalResponse:
        return GoalResponse.ACCEPT if self._server.kept < MOST_GOALS else GoalResponse.REJECT

    def _accepted(self, handle: ServerGoalHandle) -> None:
        plan_id = uuid_from_ros(handle.goal_id)
        self._goals[plan_id] = handle, Future()
        event: ev.Event
        try:
            event = ev.GoalArrived(plan_id, from_ros(handle.request))
        except ValueError as error:
            event = ev.GoalInvalid(plan_id, str(error))
        _forget_texts(handle.request)
        if not self._put(event):
            code, words = values.ErrorCode.PLANNER_INACTIVE, "the planner is not configured"
            self.end(values.PlanResult(plan_id, code, words))
        handle.execute()

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        self._put(ev.GoalCanceled(uuid_from_ros(handle.goal_id)))
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Plan.Result:
        plan_id = uuid_from_ros(handle.goal_id)
        result = await self._goals[plan_id][1]
        assert result is not None
        del self._goals[plan_id]
        if result.error_code is values.ErrorCode.NONE:
            handle.succeed()
        elif handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.abort()
        return to_ros(result)


def _forget_texts(request: Plan.Goal) -> None:
    """rclpy keeps a goal's request as long as its result."""
    request.instruction = request.scene = ""
    request.robot_id = values.head(request.robot_id, values.LONGEST_NAME)


class _Server(ActionServer[Any, Any, Any]):
    """An action server that knows which results nobody has asked for yet. rclpy has no public place
    to learn that; were this one renamed, no result would ever count as asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._asked: Counter[bytes] = Counter()  # how often, by goal
        self._then: Callable[[], None] | None = None
        super().__init__(*arguments, **options)

    @property
    def kept(self) -> int:
        """How many goals there are, those included that have ended and whose result is kept."""
        return len(self._goal_handles)

    def when_asked(self, then: Callable[[], None]) -> None:
        self._then = then
        self._look()

    async def _execute_get_result_request(self, request: Any) -> None:
        goal = bytes(request[1].goal_id.uuid)
        self._asked[goal] += 1
        result = self._result_futures.get(goal)
        if result is None or result.done() or self._asked[goal] <= MOST_ASKS:
            await super()._execute_get_result_request(request)
        if len(self._asked) > len(self._goal_handles):
            for gone in self._asked.keys() - self._goal_handles.keys():
                del self._asked[gone]
        self._look()

    def _look(self) -> None:
        if self._then is not None and self._goal_handles.keys() <= self._asked.keys():
            then, self._then = self._then, None
            then()
