#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first process. Loads the modules, sets the address, makes the rdma_rxe device, then
# runs what the host asks for: a line 'run ID' on the channel names the directory /lab/jobs/ID, which
# holds the command and gets its output and, last and by rename, its exit status.
export PATH=/bin HOME=/root

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm

die() {
	echo "lab: $1"
	[ -d /lab/jobs ] && echo "$1" >"/lab/failed.$LAB_NODE"
	poweroff -f
}

for module in /modules/*.ko; do
	insmod "$module" || die "cannot load $module"
done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072 lab /lab || die "no share with the host"

hostname "node$LAB_NODE"
ip link set lo up
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set eth0 mtu "$LAB_MTU" up || die "no network device of this MTU"
ip addr add "10.77.0.$((LAB_NODE + 1))/24" dev eth0
ip addr add "fd77::$((LAB_NODE + 1))/64" dev eth0
printf '127.0.0.1 localhost\n10.77.0.1 node0\n10.77.0.2 node1\n10.77.0.254 host\n' >/etc/hosts
rdma link add rxe0 type rxe netdev eth0 || die "no rxe device"

# The GID index of an address, for perftest's -x: rxe lists the addresses in the order they came.
gid_index() {
	gid=$(grep -l "$1" /sys/class/infiniband/rxe0/ports/1/gids/? 2>/dev/null)
	echo "${gid##*/}"
}
tries=0
while :; do
	GID4=$(gid_index "0000:0000:0000:0000:0000:ffff:0a4d:000$((LAB_NODE + 1))")
	GID6=$(gid_index "fd77:0000:0000:0000:0000:0000:0000:000$((LAB_NODE + 1))")
	[ -n "$GID4" ] && [ -n "$GID6" ] && break
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || die "rxe0 does not list its addresses"
	usleep 100000
done
export GID4 GID6

channel=
for port in /sys/class/virtio-ports/*; do
	[ "$(cat "$port/name" 2>/dev/null)" = lab ] && channel=/dev/${port##*/}
done
[ -n "$channel" ] || die "no channel from the host"

run() {
	cd "/lab/jobs/$1" || return
	setsid sh -c 'cd /root; exec sh /lab/jobs/'"$1"'/command' </dev/null >out 2>err &
	echo $! >"/run/$1"
	wait $!
	echo $? >status.new
	mv status.new status
}

echo ready >"/lab/ready.$LAB_NODE"
while read -r word id; do
	case $word in
	run) run "$id" & ;;
	kill) kill -9 -- "-$(cat "/run/$id")" 2>/dev/null ;;
	esac
done <"$channel"
die "the channel closed"
