"""Interfaces of servers: attached, plugged on their hosts, and filtered."""
