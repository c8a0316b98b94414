"""How a command ended, as its exit status says it; 0 is done."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_PLANNER = 3
EXIT_INTERRUPTED = 130
