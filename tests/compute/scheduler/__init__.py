"""The schedulers: each rule by its vectors, and against a plain reference."""
