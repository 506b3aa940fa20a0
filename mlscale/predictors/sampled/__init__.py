"""`sampled`: time and power over the engine clock from one sampled profile (decision 0015).

`estimator` is the predictor. It sees a profile as `inputs`, from which `latents` of two `curves`
follow: the `model` of one base, and between several what `bases` makes of theirs; `training` holds
applications out in turn. `tensor_cores` says which kernels use those as no training kernel did.
"""
