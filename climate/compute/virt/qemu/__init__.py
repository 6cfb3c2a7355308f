"""Servers as virtual machines of QEMU."""
