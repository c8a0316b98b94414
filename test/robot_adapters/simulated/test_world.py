"""The kinematic world: names, what is seen and what is hidden, files; and the bundled worlds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.adapter import AdapterError
from robot_adapters.perception import Sighting, plain_name, scene
from robot_adapters.simulated.world import Camera, Thing, World, first_hit
from timely_llm.paths import share

CAMERA = Camera(horizontal=90, vertical=60, reach=10)
EYE = (0.0, 0.0, 1.0)


def thing(name: str, x: float, y: float, z: float = 0.95, size=(0.1, 0.1, 0.1), **fields) -> Thing:
    return Thing(name, (x, y, z), size, **fields)


@pytest.mark.parametrize("query", ["table", "Table", "table_1", "table 2", "dining table", "desk"])
def test_a_thing_goes_by_its_name_number_or_aliases(query: str) -> None:
    assert thing("table_1", 0, 0, aliases=("dining_table", "desk")).is_called(query)


@pytest.mark.parametrize("query", ["tab", "tables", "dining", "", "1"])
def test_and_by_nothing_else(query: str) -> None:
    assert not thing("table_1", 0, 0, aliases=("dining_table",)).is_called(query)


def test_plain_names() -> None:
    assert plain_name("Aerial_Robot_12") == "aerial robot"
    assert plain_name("box 3") == "box"


def test_a_question_fits_by_whole_words() -> None:
    apple = thing("apple", 0, 0, properties=("edible", "can be peeled"))
    assert apple.fits("Anything edible here?")
    assert apple.fits("what can be peeled")
    assert apple.fits("the apple?")
    assert not apple.fits("pineapple? inedible?")


@pytest.mark.parametrize(
    ("yaw", "x", "y", "seen_x"),
    [
        (0, 2, 0, 0.5),
        (0, 2, 1, 0.25),  # left of the middle
        (0, 2, -1, 0.75),
        (90, 0, 2, 0.5),
        (90, 1, 2, 0.75),  # facing north, east is right
        (-90, 0, -2, 0.5),
    ],
)
def test_where_things_are_in_the_picture(yaw, x, y, seen_x) -> None:
    sight = CAMERA.see(EYE, yaw, thing("cat", x, y))
    assert sight.x == pytest.approx(seen_x)
    assert sight.y == pytest.approx(0.5)
    assert sight.distance == pytest.approx(math.hypot(x, y))


def test_sizes_in_the_picture() -> None:
    sight = CAMERA.see(EYE, 0, thing("door", 2, 0, z=0.0, size=(0.1, 1.0, 2.0)))
    assert sight.width == pytest.approx(0.25)  # the picture is 4 m wide there
    assert sight.height == pytest.approx(2 / (4 * math.tan(math.radians(30))))


@pytest.mark.parametrize("x,y,z", [(-2, 0, 1), (1, 2, 1), (1, 0, 3), (0.01, 0, 1), (11, 0, 1)])
def test_what_is_behind_beside_above_or_far_is_not_seen(x, y, z) -> None:
    assert CAMERA.see(EYE, 0, thing("cat", x, y, z)) is None


@given(st.floats(-180, 180), st.floats(0.2, 9), st.floats(-44, 44))
def test_turning_the_camera_is_turning_the_world(yaw, distance, bearing) -> None:
    angle = math.radians(yaw + bearing)
    cat = thing("cat", distance * math.cos(angle), distance * math.sin(angle))
    if distance * math.cos(math.radians(bearing)) > 0.06:
        expected = 0.5 - math.tan(math.radians(bearing)) / 2
        assert CAMERA.see(EYE, yaw, cat).x == pytest.approx(expected, abs=1e-6)


def test_a_box_in_between_hides() -> None:
    wall = thing("wall", 1, 0, z=0.0, size=(0.1, 1.0, 2.0))
    world = World([wall, cat := thing("cat", 2, 0), dog := thing("dog", 2, 2)])
    assert world.hidden(EYE, cat)
    assert not world.hidden(EYE, dog)
    assert not world.hidden(EYE, wall)
    assert not world.hidden((0.0, 0.0, 4.0), cat)  # from above


def test_a_container_hides_nothing() -> None:
    pencil = thing("pencil", 2, 0)
    holder = thing("holder", 2, 0, z=0.9, size=(0.2, 0.2, 0.3))
    assert not World([holder, pencil]).hidden(EYE, pencil)


@pytest.mark.parametrize(
    ("end", "share"),
    [((4, 0, 1), 0.25), ((1.5, 0, 1), 2 / 3), ((0.5, 0, 1), None), ((0, 4, 1), None)],
)
def test_where_a_way_meets_a_box(end, share) -> None:
    box = thing("box", 1.5, 0, z=0.0, size=(1, 1, 2))
    assert first_hit(EYE, end, box) == (None if share is None else pytest.approx(share))


def test_things_are_moved_and_rest_on_each_other() -> None:
    world = World([thing("red", 1, 0, z=0.0), thing("blue", 2, 0, z=0.0)])
    world.move("red", (2.0, 0.0, world.support(2.0, 0.0, without="red")))
    assert world["red"].position == (2.0, 0.0, pytest.approx(0.1))
    assert world.support(2.0, 0.0, without="red") == pytest.approx(0.1)
    assert world.support(1.0, 0.0, without="") == 0.0


def test_the_scene_is_written_as_prompts_have_it() -> None:
    sights = [
        Sighting("aerial robot", 0.476, 0.51, 0.2, 0.4, 1.0),
        Sighting("cat", 1.0, 0.0, 0.05, 0.5, 1.0),
    ]
    assert scene(sights[:1]) == "[aerial_robot x:0.48 y:0.51 width:0.2 height:0.4]"
    assert scene(sights).endswith(", cat x:1 y:0 width:0.05 height:0.5]")
    assert scene([]) == "[]"


BAD = {
    "objects: []": "1: objects: has 0 entries",
    "objects:\n- {name: cat}": "2: objects[0]: 'position' is missing",
    "objects:\n- {name: cat, positoin: [0, 0, 0]}": "unknown key 'positoin'; did you mean 'posi",
    "objects:\n- name: cat\n  position: [0, 0]": "3: objects[0].position: has 2 entries",
    "objects:\n- {name: cat, position: [0, 0, .nan]}": "must be a finite number",
    "objects:\n- {name: cat, position: [0, 0, 2000]}": "is 2000 m: must be -1000 to 1000 m",
    "objects:\n- {name: cat, position: [0,0,0], size: [1,1,-1]}": "is -1 m: must be 0 to 1000",
    "objects:\n- {name: 12, position: [0, 0, 0]}": "is '12': must be a name",
    "objects:\n- {name: a, position: [0,0,0]}\n- {name: a, position: [0,0,0]}": "'a' is given tw",
    "objects: [": "is not YAML",
    "": "is empty",
}


@pytest.mark.parametrize("text", BAD)
def test_a_wrong_file_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(AdapterError) as caught:
        World.from_yaml(text, "w.yaml")
    assert str(caught.value).startswith("world w.yaml:")
    assert BAD[text] in str(caught.value)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(AdapterError, match="nowhere.yaml"):
        World.from_file("/nowhere.yaml")


@pytest.mark.parametrize("path", sorted(share("config", "worlds").glob("*.yaml")), ids=str)
def test_the_bundled_worlds_are_sound(path) -> None:
    world = World.from_file(path)
    assert world.description
    for item in world:
        under = [t for t in world if t.name != item.name and t.contains(item.center)]
        assert under == [], f"{item.name} lies inside something"
