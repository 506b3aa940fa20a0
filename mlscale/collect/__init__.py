"""Collecting a training set on the GPU at hand, or on a processor by OpenCL.

A plan (which kernels, CU counts, clocks and power limits) is carried out by kernel_tuner in
processes of their own (running.py); what they leave in its cache files becomes the table.
"""
