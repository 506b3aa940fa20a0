"""The bottleneck predictor: time as a p-norm of what the parts of a GPU take.

- Predicting, by NumPy alone: `estimator` looks at `kernels`, whose time the model in `time` gives,
  by its `curve` and the `corrections` that a Gaussian `process` and trees learn; `power` gives
  watts, `latency` the kernels that only wait, `scores` the widths of intervals.
- Training: `training` holds applications and GPUs out in turn (`held_out`) and fits all together:
  `fit`, by the `posterior`'s maximum, in torch.
"""
