"""Filter scheduler: hosts as columns, filters as masks, weighers as numbers."""
