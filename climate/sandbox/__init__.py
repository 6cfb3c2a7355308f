"""Sandbox for real networks: namespaces that vanish with the process that created them.

Processes, mounts and interfaces are private; files and the clock are shared with the machine.
`features.probe` checks whether a sandbox is possible, `enter` runs a command in one, `topology` creates hosts in it.
"""
