#!/usr/bin/env bash
# The environment of a checkout built by `make build`, in one place.
#
#   scripts/env.sh COMMAND [ARGUMENT...]    runs one command in it, as the Makefile does
#   . scripts/env.sh                        puts the current bash into it
#
# Python packages come from the checkout, so that an edited file needs no build; the generated
# interfaces (timely_llm.msg, .srv, .action) and the executables come from install/, and ROS 2
# from the wheels in .venv. Where ROS 2 is installed on the machine, use its own setup.bash and
# install/setup.bash instead.
#
# TIMELY_LLM_VENV names the virtual environment, .venv without it; .venv-indy is that of Indy7 arms
# (`make indy`).
#
# LD_LIBRARY_PATH gets this package's libraries only: at its start, Python adds those of the ROS
# wheels (their ros_wheels_bootstrapper starts it once more, unless
# _ROS_WHEELS_BOOTSTRAP_COMPLETE says that this was done; it must not leak in from elsewhere).
# Bytecode is written whatever the machine's setting: importing vLLM takes twice as long without.

_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
_prefix="$_root/install/timely_llm"
_venv="$_root/${TIMELY_LLM_VENV:-.venv}"
_site=("$_prefix"/lib/python3.*/site-packages)

_prepend() {  # VARIABLE FOLDER: to the front, once
  local kept=":${!1}:"
  kept="${kept//":$2:"/:}"
  kept="${kept#:}"
  kept="${kept%:}"
  export "$1=$2${kept:+:$kept}"
}

_prepend PYTHONPATH "${_site[0]}"
_prepend PYTHONPATH "$_root"
_prepend PATH "$_prefix/bin"
_prepend PATH "$_venv/bin"
_prepend AMENT_PREFIX_PATH "$_venv"
_prepend AMENT_PREFIX_PATH "$_prefix"
_prepend LD_LIBRARY_PATH "$_prefix/lib"
export RMW_IMPLEMENTATION=rmw_fastrtps_cpp
unset _ROS_WHEELS_BOOTSTRAP_COMPLETE PYTHONDONTWRITEBYTECODE
unset -f _prepend
unset _root _prefix _site _venv

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  exec "$@"
fi
