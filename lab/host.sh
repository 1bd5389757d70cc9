#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: host.sh NODES MTU LINK DIR SECONDS
# First process of the lab's own PID, mount and network namespaces: makes the link, says 'ready' with
# its PID as seen from outside, and waits until its standard input ends (whoever made the lab is gone,
# whatever killed it), SIGTERM comes, or the time is over. Then it kills all that runs here and removes
# DIR. The namespaces and their devices end with it.
nodes=$1 mtu=$2 link=$3 dir=$4 seconds=$5
# /proc is still the outer one: this is the PID that nsenter needs.
read -r outer _ </proc/self/stat
exec 3<&0

fail() {
	echo "fail $1"
	exit 1
}

mount -t proc proc /proc || fail "cannot mount /proc in a new namespace"
# Without these a program would see the network devices and the shared memory of the real host.
mount -t sysfs sys /sys 2>/dev/null
mount -t tmpfs shm /dev/shm 2>/dev/null
ip link set lo up || fail "cannot configure a new network namespace"
if [ "$link" = tap ]; then
	[ -c /dev/net/tun ] || fail "no /dev/net/tun"
	ip link add br0 type bridge forward_delay 0 || fail "no bridge devices in this kernel"
	node=0
	while [ "$node" -lt "$nodes" ]; do
		ip tuntap add "tap$node" mode tap || fail "cannot make a tap device"
		ip link set "tap$node" mtu "$mtu" master br0 up || fail "cannot set a tap device up"
		node=$((node + 1))
	done
	ip link set br0 mtu "$mtu" up || fail "cannot set the bridge up"
	ip addr add 10.77.0.254/24 dev br0
	ip addr add fd77::fe/64 dev br0 nodad
fi
echo "ready $outer"

trap 'kill "$waiter"' TERM
timeout "$seconds" cat <&3 >/dev/null &
waiter=$!
wait "$waiter"
kill -9 -1 2>/dev/null
[ ! -f "$dir/made-by-lab" ] || rm -rf "$dir"
