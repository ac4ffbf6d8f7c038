"""Sentence encoders that run in the process: any BERT-style model as an ONNX graph."""
