"""Special functions in all carriers."""
