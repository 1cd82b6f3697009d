"""Tests of the transforms: Hessians, vmap, Taylor mode, checkpoints, implicit functions."""
