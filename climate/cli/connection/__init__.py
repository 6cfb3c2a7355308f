"""Connection of the command line to a deployment: clouds, sign-in and tokens."""
