#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mem.sh [BUILD [BDF]]: mem_probe of that build folder with the software device of the same. Exit 77
# where there is nothing to test.
build=${1:-build}
probe=$build/tests/gpu/mem_probe
[ -x "$probe" ] || { echo "no $probe: ninja -C $build tests/gpu/mem_probe"; exit 77; }
missing=$(ldd "$probe" | awk '/not found/ {print $1}')
[ -z "$missing" ] || { echo "not on this machine: $missing"; exit 77; }
LD_LIBRARY_PATH=$(cd "$build/src/soft/lib" && pwd)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
shift $(($# > 0))
exec "$probe" "$@"
