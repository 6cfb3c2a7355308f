#!/bin/sh
# What udhcpc tells.
case "$1" in
deconfig)
    ip -4 address flush dev "$interface"
    ip link set "$interface" up
    ;;
bound | renew)
    ip address add "$ip/$mask" broadcast + dev "$interface" 2>/dev/null
    [ -z "$router" ] || ip route replace default via "${router%% *}"
    echo "machine: $interface has $ip/$mask" >/dev/console
    ;;
esac
