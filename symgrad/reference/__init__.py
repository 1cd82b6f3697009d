"""Reference values: by SymPy's derivatives and by the rules, in balls where functions have an enclosure, else in many digits."""
