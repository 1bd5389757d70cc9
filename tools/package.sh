#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages peerpath and peerpath-soft, and a tarball of the software device that needs no
# installation, from an installed tree.
#
# usage: package.sh BUILD OUT     BUILD is set up with --prefix=/usr (make packages does it)
set -eu

build=$1 out=$2
version=$(meson introspect --projectinfo "$build" | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
architecture=$(dpkg --print-architecture)
top=$(cd "$(dirname "$0")/.." && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM

meson install -C "$build" --no-rebuild --quiet --strip --destdir "$stage/peerpath" >/dev/null

# What of the installed tree is the device's.
soft=$stage/peerpath-soft/usr
(cd "$stage/peerpath/usr" && find lib share/man \( -path 'lib/*/peerpath/*' -o -name peerpath-soft.1 \) \
	! -type d) | while read -r file; do
	mkdir -p "$soft/$(dirname "$file")"
	mv "$stage/peerpath/usr/$file" "$soft/$file"
done
find "$stage/peerpath" -type d -empty -delete
doc=$soft/share/doc/peerpath-soft
mkdir -p "$doc/examples"
cp "$top/LICENSE" "$top/docs/soft.md" "$doc/"
cp "$top"/docs/examples/soft-* "$doc/examples/"
mkdir -p "$stage/peerpath/usr/share/doc/peerpath"
cp "$top/LICENSE" "$top/README.md" "$stage/peerpath/usr/share/doc/peerpath/"
gzip -9 -n "$soft"/share/man/man1/*.1 "$stage"/peerpath/usr/share/man/man?/*

# Libraries that the files of a package are linked with, as its Depends.
depends() {
	# DEBIAN tells where $ORIGIN is: our librdmacm wants our libibverbs, not Debian's.
	mkdir -p "$stage/shlibs/debian" "$stage/$1/DEBIAN"
	printf 'Source: peerpath\nPackage: peerpath\n' >"$stage/shlibs/debian/control"
	files=$(find "$stage/$1/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \))
	# shellcheck disable=SC2086 # a list of files without blanks
	(cd "$stage/shlibs" && dpkg-shlibdeps -O --ignore-missing-info $files 2>/dev/null) |
		sed -n 's/^shlibs:Depends=//p'
}

package() {
	mkdir -p "$stage/$1/DEBIAN"
	cat >"$stage/$1/DEBIAN/control" <<-EOF
		Package: $1
		Version: $version
		Architecture: $architecture
		Maintainer: peerpath authors <peerpath@localhost>
		Section: net
		Priority: optional
		Depends: $2
		Description: $3
	EOF
	dpkg-deb --root-owner-group --build "$stage/$1" "$out/$1_${version}_$architecture.deb" >/dev/null
}

mkdir -p "$out"
package peerpath "$(depends peerpath)" "which path do bytes take between GPU and NIC, with evidence"
package peerpath-soft "peerpath (= $version), $(depends peerpath-soft)" "a software RDMA device for any verbs program"

# The device and the program that starts others on it: runs from wherever it lies.
name=peerpath-soft-$version-$architecture
mkdir "$stage/$name"
cp -r "$soft"/* "$stage/$name/"
mkdir -p "$stage/$name/bin"
cp "$stage/peerpath/usr/bin/peerpath" "$stage/$name/bin/"
tar --create --gzip --owner=0 --group=0 --numeric-owner --sort=name --directory="$stage" \
	--file="$out/$name.tar.gz" "$name"
ls -l "$out"/*"$version"*
