"""The distributions of symgrad, the wheel and the sdist: what is in them, and that they work in fresh environments of every Python."""
