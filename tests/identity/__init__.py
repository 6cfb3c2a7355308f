"""Identity: proofs, tokens, keys, revocation, and the first start."""
