"""Collecting a training set on the NVIDIA GPU at hand.

A plan (which kernels, CU counts and clocks) is carried out on a device that device.py describes;
cuda_device.py and nvml.py are the vendor's bindings, imported when a GPU is opened and not before.
"""
