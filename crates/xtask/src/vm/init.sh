#!/bin/busybox sh
# First process of the guest: mounts what a host has, runs one command, reports its exit status.
#
# Serial ports: ttyS0 kernel messages, ttyS1 standard output, ttyS2 standard error, ttyS3 the status.
export PATH=/usr/local/bin:/usr/bin:/bin:/sbin HOME=/root TERM=dumb NO_COLOR=1 LANG=C.UTF-8

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf -o mode=700 bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
hostname twopool-vm
ifconfig lo 127.0.0.1 up 2>/dev/null

for port in 1 2 3; do
	stty -F /dev/ttyS$port raw -echo
done
cd /root
/bin/busybox sh /command </dev/null >/dev/ttyS1 2>/dev/ttyS2
status=$?

# Setting a port's mode waits until what was written to it is out.
for port in 1 2; do
	stty -F /dev/ttyS$port raw -echo
done
echo "exit $status" >/dev/ttyS3
stty -F /dev/ttyS3 raw -echo
poweroff -f
