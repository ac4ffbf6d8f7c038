"""One module per vendor: data and errors are translated here, nothing is decided."""
