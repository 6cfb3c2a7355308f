"""The texts that network programs are run by: pure functions, the same for driven hosts and for recorded ones."""
