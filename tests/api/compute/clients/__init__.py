"""The unmodified clients of OpenStack against compute, image and network."""
