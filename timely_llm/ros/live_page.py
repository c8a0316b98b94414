"""The planner's web page: a server shows the state of the fleet as the node publishes and hears it.
Nothing of this runs in the engine's thread."""

from __future__ import annotations

import time
from typing import Any

from timely_llm.live.address import Address, AddressError
from timely_llm.live.server import Page, Sources, WebServer
from timely_llm.live.shared_fleet import SharedFleet
from timely_llm.ros.declare import ParameterError
from timely_llm.validation.outgoing import json_text


class LivePage:
    """What is on the page: the executor's thread writes ``fleet``, the server's threads read it."""

    def __init__(self, address: Address, logger: Any) -> None:
        self.fleet = SharedFleet()
        sources = Sources(Page.bundled(), self._view, self._plan, self._metrics)
        self._server = WebServer(address, sources, logger.warning)
        self._server.start()
        logger.info(f"the fleet is shown at http://{self._server.address}/")
        if not self._server.address.is_loopback:
            logger.warning("whoever reaches this address can see the fleet and its instructions")

    def close(self) -> None:
        """Free the address."""
        self._server.close()

    def _view(self) -> bytes:
        return json_text(self.fleet.view()).encode()

    def _plan(self, plan_id: str) -> bytes | None:
        shown = self.fleet.detail(plan_id)
        return None if shown is None else json_text(shown).encode()

    def _metrics(self) -> bytes:
        from timely_llm.live.prometheus import exposition

        with self.fleet.changed:
            return exposition(self.fleet.state, time.monotonic())


def open_page(values: dict[str, Any], logger: Any) -> LivePage | None:
    """The page that the parameter ``web`` asks for; says where it is. None where it is empty.
    ``ParameterError`` where there is no such address, or somebody else has it."""
    if not values["web"]:
        return None
    try:
        return LivePage(Address.parse(values["web"]), logger)
    except AddressError as error:
        raise ParameterError(f"parameter 'web': {error}") from error
    except OSError as error:
        raise ParameterError(
            f"parameter 'web': {values['web']}: {error.strerror or error}"
        ) from error
