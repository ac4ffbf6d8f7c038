"""Stand-ins for AWS that play what synthesized CloudFormation templates configure, on loopback."""
