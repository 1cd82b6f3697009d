"""Functions under examination: those of symgrad with their inputs, and those of other systems behind adapters."""
