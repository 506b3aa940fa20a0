"""The bottleneck predictor: time as a p-norm of what the parts of a GPU take.

- Predicting, by NumPy alone: `estimator` looks at what `model` knows of time and power: the
  `curve`, whose shares a Gaussian `process` gives.
- Training: `training` holds applications and GPUs out in turn and fits all together: `fit`, in
  torch.
"""
