"""An executor that no exception ends: what a callback or a task raises is logged, and it goes on.

rclpy's ``EventsExecutor`` raises out of ``spin`` what a callback raised, and leaves the other
messages that had come with it for later; what a task raised ends the process (SIGSEGV).
"""

from __future__ import annotations

import faulthandler
import functools
import inspect
import itertools
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.task import Future

from timely_llm.protocols.messages import ErrorCode
from timely_llm.validation.outgoing import visible

_AGAIN = 5.0  # s, after which a failure that repeats itself is logged again


class GuardedExecutor(rclpy_implementation.EventsExecutor):
    """Guards the callbacks of its nodes, whenever they were made, and all tasks. A service whose
    callback failed answers so: nobody waits for an answer that never comes. ``failed`` is called
    after each failure: a node that moves a robot does not go on."""

    def __init__(self) -> None:
        context = rclpy.get_default_context()
        super().__init__(context)
        faulthandler.enable()
        context.on_shutdown(self.wake)
        self._nodes: list[Node] = []
        self._known: WeakSet[Any] = WeakSet()  # whose callbacks are guarded
        self._told, self._told_at = "", 0.0
        self.failed: Callable[[], None] = lambda: None

    def add_node(self, node: Node) -> bool:
        if node not in self._nodes:
            self._nodes.append(node)
            self._guard_all()
        return bool(super().add_node(node))

    def wake(self) -> None:
        """A node has something new."""
        self._guard_all()
        super().wake()

    def create_task(self, callback: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return super().create_task(self._guarded(callback), *args, **named)

    def spin_to_end(self, future: Future[Any], timeout: float) -> None:
        """Spin until ``future`` is done, whatever rclpy itself raises meanwhile."""
        while not future.done():
            try:
                self.spin_until_future_complete(future, timeout)
            except ExternalShutdownException:
                raise
            except Exception:
                self.tell()

    def tell(self) -> None:
        """Log the exception that is being handled, with its traceback."""
        words, now = visible(traceback.format_exc()), time.monotonic()
        if words != self._told or now >= self._told_at + _AGAIN:
            self._told, self._told_at = words, now
            log = self._nodes[0].get_logger() if self._nodes else get_logger("executor")
            log.error(f"a fault of this program, passed over:\n{words}")
        self.failed()

    def _guard_all(self) -> None:
        for node in self._nodes:
            for entity in self._new(itertools.chain(node.subscriptions, node.timers)):
                entity.callback = self._guarded(entity.callback)
            for service in self._new(node.services):
                service.callback = self._guarded(service.callback, _refusal)
                service.send_response = self._guarded(service.send_response)  # to whom may be gone
            for waitable in self._new(node.waitables):
                waitable.execute = self._guarded(waitable.execute)

    def _new(self, entities: Iterable[Any]) -> list[Any]:
        new = [entity for entity in entities if entity not in self._known]
        self._known.update(new)
        return new

    def _guarded(
        self, callback: Callable[..., Any], failed: Callable[..., Any] = lambda *args: None
    ) -> Callable[..., Any]:
        """``callback``; where it raises, that is logged and the value is ``failed``'s of the same
        arguments."""

        async def awaits(*args: Any, **named: Any) -> Any:
            try:
                return await callback(*args, **named)
            except Exception:
                self.tell()
                return failed(*args)

        def calls(*args: Any, **named: Any) -> Any:
            try:
                return callback(*args, **named)
            except Exception:
                self.tell()
                return failed(*args)

        guarded = awaits if inspect.iscoroutinefunction(callback) else calls
        return functools.update_wrapper(guarded, callback)


def _refusal(request: Any, response: Any) -> Any:
    """The answer of a service whose callback failed: an empty one, and what went wrong where it has
    room for that."""
    empty = type(response)()
    if "error_code" in empty.get_fields_and_field_types():
        empty.error_code = int(ErrorCode.ENGINE_FAILED)
        empty.error_msg = "the planner failed at this request: its log says why"
    return empty
