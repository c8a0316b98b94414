"""Settings that every test shares."""

import os

from hypothesis import HealthCheck, settings

# Read when torch is imported, which a test of the model's data may do before the engine's do.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

# No deadlines: on a busy machine they would measure the machine. In CI the same examples always.
settings.register_profile(
    "timely_llm", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("timely_llm"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "timely_llm")
