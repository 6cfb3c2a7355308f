"""A small machine for tests: Debian's kernel and busybox on a disk that boots by itself."""
