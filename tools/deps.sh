#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need and is missing, by apt-get as root. Elsewhere, or
# without root, names the packages and fails.
set -eu

# how to see that it is there, and Debian's package
needs='
cmd:gcc gcc
cmd:make make
cmd:meson meson
cmd:ninja ninja-build
cmd:pkg-config pkg-config
cmd:python3 python3
cmd:scdoc scdoc
cmd:zstd zstd
header:stdio.h libc6-dev
pc:jansson libjansson-dev
pc:libmnl libmnl-dev
pc:libbpf libbpf-dev
pc:libelf libelf-dev
pc:expat libexpat1-dev
pc:libsodium libsodium-dev
pc:libzstd libzstd-dev
pc:zlib zlib1g-dev
pc:sqlite3 libsqlite3-dev
pc:libmicrohttpd libmicrohttpd-dev
pc:cmocka libcmocka-dev
pc:libibverbs libibverbs-dev
pc:librdmacm librdmacm-dev
'

# What one target needs beside that: tools/deps.sh 'cmd:dh debhelper'
for more in "$@"; do
	needs="$needs$more
"
done

has() {
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
	pc:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pc:}" ;;
	header:*) [ -e "/usr/include/${1#header:}" ] ;;
	esac
}

missing() {
	echo "$needs" | while read -r what package; do
		[ -z "$what" ] || has "$what" || printf '%s ' "$package"
	done
}

packages=$(missing)
[ -n "$packages" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "make: missing packages (Debian names): $packages" >&2
	echo "make: as root on Debian or Ubuntu: apt-get install $packages" >&2
	exit 1
fi
echo "installing: $packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of package names
apt-get install -y -qq --no-install-recommends $packages >/dev/null
packages=$(missing)
[ -z "$packages" ] || { echo "make: still missing after installation: $packages" >&2; exit 1; }
