"""config/planner.yaml names every parameter of the planner node, each at its default."""

import yaml

from timely_llm.paths import share
from timely_llm.ros.parameters import PARAMETERS


def test_the_parameter_file_has_all_parameters_at_their_defaults() -> None:
    text = share("config", "planner.yaml").read_text()
    given = yaml.safe_load(text)["/**/planner"]["ros__parameters"]
    presets = given.pop("utility")
    given |= {f"utility.{urgency}": numbers for urgency, numbers in presets.items()}
    assert given == {name: parameter.default for name, parameter in PARAMETERS.items()}


def test_every_parameter_is_explained() -> None:
    """Each line with a value comes after a comment, or after another value of its group."""
    lines = share("config", "planner.yaml").read_text().splitlines()
    explained = False
    for line in lines[lines.index("  ros__parameters:") + 1 :]:
        explained = line.strip().startswith("#") or (explained and bool(line.strip()))
        assert explained or not line.strip(), line
