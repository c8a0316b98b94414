#!/bin/sh
# Says what is missing on this machine before a long installation fails for it.
# PYTHON names the interpreter of the virtual environment.

fail() {
  echo "$1" >&2
  exit 1
}

command -v "$PYTHON" > /dev/null ||
  fail "There is no $PYTHON here: install python3, python3-venv and python3-dev, or set PYTHON."
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  fail "The lock files are for Python 3.11; $PYTHON is $("$PYTHON" -V). Set PYTHON=python3.11."
"$PYTHON" -c 'import ensurepip, venv' 2> /dev/null ||
  fail "$PYTHON cannot make virtual environments: install python3-venv."
"$PYTHON" -c '
import pathlib, sys, sysconfig
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' ||
  fail "The headers of $PYTHON are missing: install python3-dev."
for program in gcc g++ make; do
  command -v "$program" > /dev/null || fail "There is no $program here: install build-essential."
done
