"""Daemons of one Linux host: DHCP and DNS servers, router advertisements."""
