"""Attention: softmax(q kᵀ) v and its gradients, without the matrix of scores in memory."""
