"""Commands of operators: services, nodes, journal, audit, doctor."""
