"""Hours of goals under kills and forged messages, and what came of them: ``make soak``.

``judges.py`` is pure: it reads the records that the processes wrote. ``conductor.py`` starts and
kills the processes, whose programs are the other files.
"""
