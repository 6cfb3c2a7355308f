"""VLANs of one Linux host, between its bridges and the wire: 802.1Q, tags by eBPF, or VXLAN."""
