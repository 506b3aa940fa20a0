"""The bottleneck predictor: time as a p-norm of what the parts of a GPU take.

- Predicting, by NumPy alone: `estimator` looks at what `model` knows of time: the `curve`, whose
  shares a Gaussian `process` gives, and its correction; `power` gives watts.
- Training: `training` holds applications and GPUs out in turn and fits all together: `fit`, in
  torch, by `optimiser`.
"""
