"""The Python packages alone, without the ROS interfaces: for tools, simulation and evaluation.

`colcon build` does not use this file (CMakeLists.txt installs the packages beside the generated
interfaces). `pip install '.[vllm]'` brings vLLM for a GPU into an environment that has ROS 2.
"""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from setuptools import find_packages, setup

FOLDER = Path(__file__).resolve().parent


def requirements(name: str) -> list[str]:
    lines = (FOLDER / "requirements" / f"{name}.in").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def shared() -> list[tuple[str, list[str]]]:
    """The files that `timely_llm.paths.share` finds, by the folder that they go to."""
    found: dict[str, list[str]] = {}
    for folder in ("config", "models/tiny_planner"):
        for path in sorted((FOLDER / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                place = path.relative_to(FOLDER)
                found.setdefault(f"share/timely_llm/{place.parent}", []).append(str(place))
    return list(found.items())


package = ElementTree.parse(FOLDER / "package.xml").getroot()

setup(
    name="timely-llm",
    version=package.findtext("version"),
    description=" ".join(package.findtext("description").split()),
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["timely_llm*", "robot_adapters*"]),
    package_data={"timely_llm": ["data/*", "live/*.html", "recording/*.jinja2"]},
    data_files=shared(),
    install_requires=requirements("base"),
    extras_require={
        # The version that the scheduler was tested with, built for a GPU.
        "vllm": ["vllm==0.32.0"],
        "robots": requirements("robots"),
        # Pins a numpy, grpcio and protobuf that vLLM cannot use: an environment of its own.
        "indy7": ["neuromeka==3.5.*"],
        "test": requirements("dev"),
    },
    entry_points={"console_scripts": ["timely-llm = timely_llm.cli:main"]},
)
