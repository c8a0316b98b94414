"""A profile of an engine that was never measured, for tests to write and read."""

import functools
import json
import random

from timely_llm.bench import profile_file as profile
from timely_llm.bench.latency_fit import Sample, StepShape, judge
from timely_llm.bench.profile_file import Loop
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineInfo

LATENCY = StepLatency((0.00312345, 0.0034), 0.0003, 5e-8, 4e-5, 3e-9, 0.0025, 0.0006)
INFO = EngineInfo("vllm-cpu", "0.32.0", "m", 16, 32, 2183, 4096)


@functools.cache
def report():
    rng, samples = random.Random(0), []
    for visit in range(4):
        for shape in (StepShape(1, 0, 64), StepShape(2, 0, 64), StepShape(0, 16, 0)):
            time = LATENCY(shape.batch, shape.prefill, shape.batch * 64) * rng.gauss(1.0, 0.05)
            samples.append(Sample(shape, visit, shape.batch, shape.prefill, shape.batch * 64, time))
    return judge(samples)


def write(folder, latency=LATENCY, model=None, loop=None):
    model = model or make_model(folder / "planner", {"hidden_size": 192})
    path = folder / "mine.yaml"
    profile.write(
        path,
        model=str(model),
        info=INFO,
        prefill_chunk=2048,
        arguments={"dtype": "bfloat16"},
        grammar="tello",
        machine={"processor": "some cpu", "cores": 2, "load": 0.1},
        measured={"date": "2026-11-21", "seconds": 60.0, "steps_of_a_cell": 120},
        latency=latency,
        report=report(),
        loop=loop or Loop(0.0033),
    )
    return path


def make_model(folder, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder
