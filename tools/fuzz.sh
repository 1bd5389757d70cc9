#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target of tests/fuzz for SECONDS each, one on each processor, under ASan and UBSan.
# Usage: tools/fuzz.sh SECONDS|build [TARGET...]      needs clang; builds in build-fuzz/
# One line a target. New inputs stay in build-fuzz/found/, crashing ones in build-fuzz/crash/.
# Exit: 0 nothing found, 1 some target failed (its last lines are printed), 64 usage, 77 no clang.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build-fuzz
seconds=${1:-}
case $seconds in
build) ;;
'' | *[!0-9]* | 0) echo "usage: $0 SECONDS [TARGET...]" >&2; exit 64 ;;
esac
shift
command -v clang >/dev/null || { echo "clang is not installed: skipped"; exit 77; }

log=$build/fuzz.log
# What is undefined traps: its own messages are a fifth of the compiler's time, and libFuzzer says where it was.
if [ -z "${PEERPATH_FUZZ_ONE:-}" ] && [ ! -f "$build/build.ninja" ]; then
	mkdir -p "$build"
	CC=clang meson setup "$build" "$top" -Dfuzz=true -Db_sanitize=address,undefined \
		-Db_lundef=false -Doptimization=1 -Dc_args='-g1 -fsanitize-trap=undefined' >"$log" 2>&1 || { tail -20 "$log"; exit 1; }
fi
# Of the tree only the targets: half of it, and clang with all of it takes minutes.
if [ -z "${PEERPATH_FUZZ_ONE:-}" ]; then
	if [ $# -eq 0 ]; then
		# shellcheck disable=SC2046 # names without blanks
		set -- $(ninja -C "$build" -t targets all | sed -n 's,^tests/fuzz/fuzz_\([a-z0-9_]*\): .*,\1,p')
	fi
	# shellcheck disable=SC2046 # names without blanks
	ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s ' "$@") >"$log" 2>&1 || { tail -20 "$log"; exit 1; }
fi

# One target; called by ourselves. What it says comes in one piece.
if [ "${PEERPATH_FUZZ_ONE:-}" ]; then
	target=$1
	log=$build/fuzz.$target.log
	program=$build/tests/fuzz/fuzz_$target
	found=$build/found/$target
	crash=$build/crash/$target
	mkdir -p "$found" "$crash"
	# The outer limit covers a target that hangs where libFuzzer cannot see it.
	timeout -k 5 $((seconds + 60)) "$program" -max_total_time="$seconds" -timeout=10 \
		-rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 -verbosity=1 \
		-artifact_prefix="$crash/" "$found" "$top/tests/fuzz/corpus/$target" >"$log" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "$target: ok, ${runs:-0} runs in $seconds s"
		exit 0
	fi
	printf '%s\n%s\n' "$target: FAILED (status $status), see $crash" "$(tail -30 "$log")"
	exit 1
fi
[ "$seconds" != build ] || exit 0
printf '%s\n' "$@" | PEERPATH_FUZZ_ONE=1 xargs -n 1 -P "$(nproc)" sh "$0" "$seconds" || exit 1
