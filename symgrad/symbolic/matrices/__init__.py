"""Matrix calculus: compact formulas of values, gradients and Hessians of functions of vectors and matrices."""
