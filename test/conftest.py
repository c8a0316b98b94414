"""Settings that every test shares."""

from hypothesis import settings

# No deadline: on a busy machine it would measure the machine.
settings.register_profile("timely_llm", deadline=None, print_blob=True)
settings.load_profile("timely_llm")
