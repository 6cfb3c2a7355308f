"""A world of its own for networks that are real: namespaces that vanish with the process that made them.

Processes, mounts and interfaces inside are nobody else's; files and the clock are everybody's.
`features.probe` says whether there can be one here, `enter` runs a command in one, `topology` makes hosts in it.
"""
