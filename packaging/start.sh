#!/bin/sh
# What a container runs: a starter configuration if there is none, the layout of the store, the gateway.
set -eu
test -e carnet.toml || carnet init . --quiet
carnet migrate
exec carnet serve "$@"
