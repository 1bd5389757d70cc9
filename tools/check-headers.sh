#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone: what it needs, it includes.
set -eu
cd "$(dirname "$0")/.."
failed=0
for header in $(find src -name '*.h' | sort); do
	echo "#include \"${header#src/}\"" | gcc -std=gnu17 -D_GNU_SOURCE -Isrc -Wall -Wextra \
		-Wno-unused-parameter -Werror -fsyntax-only -x c - || { echo "$header: does not compile alone"; failed=1; }
done
exit $failed
