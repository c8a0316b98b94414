"""Other planners in this one's namespace: both get every goal and every registration."""

from __future__ import annotations

from collections.abc import Callable

RECENT = 10.0  # s since another one was heard, in which it counts as there
_MOST = 16  # that are remembered


class OtherPlanners:
    """Hears who publishes status; ``warn`` logs each newcomer once. Times are s."""

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._own: set[str] = set()
        self._heard: dict[str, float] = {}  # when last, by instance

    def own(self, instance: str) -> str:
        """This planner calls itself so from now on; its earlier names stay its own."""
        self._own.add(instance)
        return instance

    def hear(self, instance: str, now: float) -> None:
        """A status came from ``instance``."""
        if instance in self._own:
            return
        if instance not in self.there(now):
            self._warn(
                f"another planner is heard in this namespace, {instance[:8]}: goals and robots "
                "that both of them get will fail. End one of them, or give it a namespace"
            )
        self._heard.pop(instance, None)
        self._heard[instance] = now
        while len(self._heard) > _MOST:
            del self._heard[next(iter(self._heard))]

    def there(self, now: float) -> tuple[str, ...]:
        """The instances that were heard recently."""
        return tuple(name for name, at in self._heard.items() if now - at <= RECENT)
