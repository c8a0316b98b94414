"""Settings that every test shares."""

import os

from hypothesis import settings

# No deadline: on a busy machine it would measure the machine. In CI the same examples every time.
settings.register_profile("timely_llm", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("timely_llm"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "timely_llm")
