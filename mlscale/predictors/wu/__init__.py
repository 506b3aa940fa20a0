"""The predictor of Wu et al., HPCA 2015.

`estimator` is the predictor; `scaling` has the scaling values and the walk, `clusters` the cluster
sets with their networks, `training` K-means and the networks' training in torch.
"""
