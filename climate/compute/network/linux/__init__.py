"""Networks of one Linux host, in its kernel: bridges, VLANs, interfaces of guests, and what is served on them."""
