"""Tests of backward, grad, forward mode, custom Functions and `autograd.functional`."""
