"""The bottleneck predictor: time as a p-norm of what the parts of a GPU take."""
