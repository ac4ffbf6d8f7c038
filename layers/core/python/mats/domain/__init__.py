"""Values and arithmetic: what a capability is, how it is described, how candidates are ranked. No I/O."""
