"""Data types, devices, domains, trees and indices."""
