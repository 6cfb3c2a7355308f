"""Tasks of servers, which the compute service of their node carries out."""
