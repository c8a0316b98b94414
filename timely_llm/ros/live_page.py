"""The planner's web page: the state of the fleet is followed from what the node publishes
and hears, and a server shows it. Nothing of this runs in the engine's thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from timely_llm.live.address import Address, AddressError
from timely_llm.live.fleet_state import FleetState
from timely_llm.live.server import Page, Sources, WebServer
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus, RobotInfo
from timely_llm.ros.declare import ParameterError


class LivePage:
    """The state of the fleet: the executor's thread writes it, the server's threads read it."""

    def __init__(self, address: Address, log: Callable[[str], object]) -> None:
        self._fleet, self._lock = FleetState(), threading.Lock()
        sources = Sources(Page.bundled(), self._view, self._plan, self._metrics)
        self.server = WebServer(address, sources, log)
        self.server.start()

    @property
    def url(self) -> str:
        return f"http://{self.server.address}/"

    def close(self) -> None:
        self.server.close()

    # What happens.

    def status(self, status: PlannerStatus) -> None:
        with self._lock:
            self._fleet.follow_status(status, time.monotonic())

    def robots(self, robots: tuple[RobotInfo, ...]) -> None:
        with self._lock:
            self._fleet.follow_robots(robots)

    def event(self, event: PlanEvent) -> None:
        with self._lock:
            self._fleet.follow_event(event, time.monotonic())

    def execution(self, robot_id: str, report: Execution) -> None:
        with self._lock:
            self._fleet.follow_execution(robot_id, report, time.monotonic())

    # What is shown.

    def _view(self) -> bytes:
        with self._lock:
            shown = view(self._fleet, time.monotonic())
        return _json(shown)

    def _plan(self, plan_id: str) -> bytes | None:
        with self._lock:
            shown = detail(self._fleet, plan_id, time.monotonic())
        return None if shown is None else _json(shown)

    def _metrics(self) -> bytes:
        from timely_llm.live.metrics import exposition

        with self._lock:
            return exposition(self._fleet, time.monotonic())


class NoPage:
    """Takes everything and shows nothing: the parameter ``web`` is empty."""

    def close(self) -> None:
        pass

    def status(self, status: PlannerStatus) -> None:
        pass

    def robots(self, robots: tuple[RobotInfo, ...]) -> None:
        pass

    def event(self, event: PlanEvent) -> None:
        pass

    def execution(self, robot_id: str, report: Execution) -> None:
        pass


def open_page(values: dict[str, Any], logger: Any) -> LivePage | NoPage:
    """The page that the parameter ``web`` asks for; says where it is. ``ParameterError`` where
    there is no such address, or somebody else has it."""
    if not values["web"]:
        return NoPage()
    try:
        page = LivePage(Address.parse(values["web"]), logger.warning)
    except AddressError as error:
        raise ParameterError(f"parameter 'web': {error}") from error
    except OSError as error:
        raise ParameterError(
            f"parameter 'web': {values['web']}: {error.strerror or error}"
        ) from error
    logger.info(f"the fleet is shown at {page.url}")
    if not page.server.address.is_loopback:
        logger.warning("whoever reaches this address can see the fleet and its instructions")
    return page


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
