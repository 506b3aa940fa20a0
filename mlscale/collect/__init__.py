"""Collecting a training set on the GPU at hand, or on a processor by OpenCL."""
