#!/bin/sh
# What a container runs: a starter configuration if there is none, the layout of the store, the gateway.
set -eu
# The starter is for SQLite, whatever store is named: that one has no layout yet.
test -e carnet.toml || env -u CARNET__STORE__URL carnet init . --quiet
carnet migrate
exec carnet serve "$@"
