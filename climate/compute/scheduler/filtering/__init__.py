"""The filter scheduler: filter, weigh, choose, consume."""
