#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Debian packages of debian/, and a tarball of the software device that needs no installation, from what is
# built already.
#
# usage: package.sh BUILD OUT     BUILD is set up with --prefix=/usr (make packages does it)
#
# Debian's own way, which builds too: dpkg-buildpackage -b
set -eu

command -v dh >/dev/null || { echo "no debhelper (Debian: apt-get install debhelper dpkg-dev)" >&2; exit 1; }
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
version=$(meson introspect --projectinfo "$build" | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
architecture=$(dpkg --print-architecture)
top=$(cd "$(dirname "$0")/.." && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM

said=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
[ "$said" = "$version" ] || { echo "debian/changelog has version $said, meson.build $version" >&2; exit 1; }

# In a copy: debhelper writes into debian/ and beside the tree.
source=$stage/peerpath-$version
mkdir "$source"
cp -a "$top/debian" "$top/docs" "$top/README.md" "$top/LICENSE" "$source/"
(cd "$source" && PEERPATH_BUILD=$build dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >"$stage/log" 2>&1) || {
	tail -n 40 "$stage/log" >&2
	exit 1
}
mv "$stage"/*.deb "$out/"

# The device and the program that starts others on it: runs from wherever it lies.
name=peerpath-soft-$version-$architecture
dpkg-deb -x "$out/peerpath-soft_${version}_$architecture.deb" "$stage/soft"
dpkg-deb -x "$out/peerpath_${version}_$architecture.deb" "$stage/program"
mkdir -p "$stage/$name/bin"
cp -r "$stage/soft/usr"/* "$stage/$name/"
cp "$top/LICENSE" "$stage/$name/share/doc/peerpath-soft/"
cp "$stage/program/usr/bin/peerpath" "$stage/$name/bin/"
cp "$stage"/program/usr/lib/*/peerpath/*.so "$(echo "$stage/$name"/lib/*/peerpath)/"
tar --create --gzip --owner=0 --group=0 --numeric-owner --sort=name --directory="$stage" \
	--file="$out/$name.tar.gz" "$name"
ls -l "$out"/*"$version"*
