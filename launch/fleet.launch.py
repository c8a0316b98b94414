"""The planner and the robots of a fleet file.

    ros2 launch timely_llm fleet.launch.py fleet:=/path/to/fleet.yaml

`timely-llm demo` starts the same nodes from the same file without launch.
"""

import sys

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
)
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from timely_llm.cli.fleet_file import fleet_nodes, load_fleet
from timely_llm.paths import share

#: Arguments that are passed on to planner.launch.py as they are.
OF_PLANNER = ("namespace", "params_file", "use_sim_time", "log_level", "model", "policy", "pace",
              "engine", "enclaves")  # fmt: skip


def generate_launch_description() -> LaunchDescription:
    planner = PythonLaunchDescriptionSource(str(share("launch", "planner.launch.py")))
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "fleet",
                default_value=str(share("config", "fleets", "demo.yaml")),
                description="fleet file: robots, kinds, namespaces, adapters",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="of the planner; robots lie below it"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=str(share("config", "planner.yaml")),
                description="ROS parameter file of the planner",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                choices=["true", "false"],
                description="take the time from /clock",
            ),
            DeclareLaunchArgument(
                "log_level", default_value="info", description="debug, info, warn, error or fatal"
            ),
            DeclareLaunchArgument("model", default_value="", description="as planner.launch.py"),
            DeclareLaunchArgument("policy", default_value="", description="as planner.launch.py"),
            DeclareLaunchArgument("pace", default_value="", description="as planner.launch.py"),
            DeclareLaunchArgument("engine", default_value="", description="as planner.launch.py"),
            DeclareLaunchArgument(
                "enclaves",
                default_value="",
                description="where the SROS 2 enclaves lie, /timely_llm for those of our policy: "
                "planner below it, and each robot's id; empty: none",
            ),
            DeclareLaunchArgument(
                "planner",
                default_value="true",
                choices=["true", "false"],
                description="start the planner, too",
            ),
            # First: a wrong fleet file shall be refused before anything is started.
            OpaqueFunction(function=robots),
            IncludeLaunchDescription(
                planner,
                launch_arguments=[(name, LaunchConfiguration(name)) for name in OF_PLANNER],
                condition=IfCondition(LaunchConfiguration("planner")),
            ),
        ]
    )


def robots(context: LaunchContext) -> list[LogInfo | ExecuteProcess]:
    """The simulators of the fleet file, and a node for each of its robots."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    def enclave(name: str) -> list[str]:
        return ["--enclave", f"{value('enclaves')}/{name}"] if value("enclaves") else []

    fleet = load_fleet(value("fleet"))
    nodes = [
        Node(
            package="timely_llm",
            executable=node.executable,
            name=node.name,
            namespace=node.namespace,
            parameters=[{"use_sim_time": value("use_sim_time") == "true", **node.parameters}],
            arguments=["--ros-args", "--log-level", value("log_level"), *enclave(robot.robot_id)],
            prefix=node.python or None,
            output="screen",
        )
        for robot, node in zip(fleet.robots, fleet_nodes(fleet, value("namespace")), strict=True)
    ]
    simulators = [
        ExecuteProcess(
            cmd=[each.python or sys.executable, "-m", "timely_llm.cli", *each.command],
            name=f"sim_{each.name}",
            output="screen",
        )
        for each in fleet.simulators
    ]
    words = LogInfo(msg=f"fleet: {len(nodes)} robots from {value('fleet')}")
    return [words, *simulators, *nodes]
