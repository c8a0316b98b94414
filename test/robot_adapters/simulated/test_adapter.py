"""Making a simulated robot: parameters, seeds, adapters and robots of one's own."""

from __future__ import annotations

import pytest
from pilot import INDY7, TELLO, Pilot, at

from robot_adapters.adapter import Adapter, AdapterError, make_adapter
from robot_adapters.simulated.adapter import SimulatedAdapter
from timely_llm.language.loader import read_skill_set


def test_it_is_an_adapter() -> None:
    assert isinstance(Pilot().adapter, Adapter)


def test_the_same_seed_gives_the_same_times() -> None:
    def times(robot_id: str, seed: int) -> list[float]:
        adapter = SimulatedAdapter(robot_id, INDY7, seed=seed)
        return [adapter._rng.random() for _ in range(5)]

    assert times("r1", 1) == times("r1", 1)
    assert len({tuple(times(*key)) for key in (("r1", 1), ("r1", 2), ("r2", 1))}) == 3


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"body": "dron"}, "unknown 'dron'; did you mean 'drone'?"),
        ({"world": "hause"}, "no bundled world 'hause'; did you mean 'house'?"),
        ({"world": "/nowhere.yaml"}, "/nowhere.yaml"),
        ({"world": "~nobody_here/x.yaml"}, "~nobody_here/x.yaml"),
        ({"z": 0.1}, "start: z would be 0.10 m: geofence is 0.2 to 3 m"),
        ({"sead": 3}, "unknown parameter 'sead'; did you mean 'seed'?"),
    ],
)
def test_wrong_parameters_are_refused(parameters, words) -> None:
    with pytest.raises(AdapterError) as caught:
        make_adapter("simulated", "r1", TELLO, **parameters)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("simulatet", "unknown name 'simulatet'; did you mean 'simulated'"),
        ("no_such_module:Rover", "No module named 'no_such_module'"),
        ("robot_adapters.simulated.adapter:Rover", "has no attribute 'Rover'"),
    ],
)
def test_an_unknown_adapter_is_refused(name, words) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter(name, "r1", TELLO)


def test_an_adapter_of_ones_own_is_named_by_module_and_class() -> None:
    adapter = make_adapter("robot_adapters.simulated.adapter:SimulatedAdapter", "r1", TELLO, seed=3)
    assert isinstance(adapter, SimulatedAdapter)


ROVER = """
kind: rover
skills:
  - {name: mf, long_name: move_forward, arguments: [{name: d, type: int, minimum: 1, maximum: 100}],
     duration: {constant: 1}}
  - {name: beep, duration: {constant: 0.5}}
  - {name: soil, duration: {constant: 2}, returns: float}
"""


def test_a_robot_of_ones_own_does_what_the_world_knows_and_takes_its_time_else() -> None:
    rover = Pilot(read_skill_set(ROVER), z=0.0)
    assert rover.do("beep") is None
    assert rover.took == pytest.approx(0.5)
    assert rover.do("soil") == 0.0
    rover.do("mf", 100)
    assert at(rover) == (1, 0, 0, 0)
    rover.adapter.hold(rover.now)  # nothing that could land
    assert rover.adapter.next_poll(rover.now) is None
