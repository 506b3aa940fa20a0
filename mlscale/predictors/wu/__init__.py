"""The predictor of Wu et al., HPCA 2015."""
