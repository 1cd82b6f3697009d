"""Programs: recorded computations as lists of steps, with their signatures and caches."""
