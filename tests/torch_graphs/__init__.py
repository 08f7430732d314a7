"""Random graphs of torch's operators through the torch.compile backend, compared with eager torch."""
