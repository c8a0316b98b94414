"""The planner node.

    ros2 launch timely_llm planner.launch.py policy:=timely model:=/path/to/model

Arguments that are empty leave to the parameter file what they name.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from timely_llm.paths import share

#: Parameters of the node that are arguments, too.
PARAMETERS = {
    "model": "path or name that vLLM loads; the bundled planner if nobody names one",
    "policy": "scheduling policy",
    "pace": "preset whose step times the engine is slowed to, or none",
    "engine": "vllm, or simulated",
}


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument("namespace", default_value="", description="of the planner"),
            DeclareLaunchArgument(
                "params_file",
                default_value=str(share("config", "planner.yaml")),
                description="ROS parameter file",
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
            DeclareLaunchArgument(
                "enclaves",
                default_value="",
                description="where the SROS 2 enclaves lie, /timely_llm for those of our policy: "
                "planner below it; empty: none",
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=words)
                for name, words in PARAMETERS.items()
            ),
            OpaqueFunction(function=planner),
        ]
    )


def planner(context: LaunchContext) -> list[Node]:
    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    given = {name: value(name) for name in PARAMETERS if value(name)}
    enclave = ["--enclave", f"{value('enclaves')}/planner"] if value("enclaves") else []
    return [
        Node(
            package="timely_llm",
            executable="planner_node",
            name="planner",
            namespace=value("namespace"),
            parameters=[
                value("params_file"),
                {"use_sim_time": value("use_sim_time") == "true", **given},
            ],
            arguments=["--ros-args", "--log-level", value("log_level"), *enclave],
            output="screen",
            sigterm_timeout="10",
        )
    ]
