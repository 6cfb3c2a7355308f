"""What the engine writes, and the way it reads it back."""
