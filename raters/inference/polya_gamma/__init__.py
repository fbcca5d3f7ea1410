"""Pólya-Gamma back-ends: everything is read off the model's program.

- `gibbs`, `em`, `hmc`: the back-ends; `plans`, `sweep`, `ties`: their sweeps.
- `detection`, `rows`, `colours`: which sites are blocks, and the design of a block.
- `conditionals`, `sums`, `augmentation`: Gaussian full conditionals, and ω.
- `latent_classes`: classes and counts.
- `line`, `local_effects`: other steps of a sweep.
- `laplace`, `integrated`, `scales`, `tables`: hyper-parameters and draws of EM.
"""
