"""What the service adds for somebody who looks: the console's files, and a registry that can be read and written."""
