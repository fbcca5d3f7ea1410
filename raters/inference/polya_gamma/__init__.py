"""Pólya-Gamma back-ends: everything is read off the model's program. Where to find what:

- `gibbs`, `em`, `vi`, `hmc`: the back-ends, each with its sweep; `sweep`: the plan of a sweep.
- `detection`, `rows`, `colours`: which sites are blocks, and the design of a block.
- `conditionals`, `components`, `augmentation`: Gaussian full conditionals, and ω; on an accelerator
  `devices`. `latent_classes`: classes and counted probabilities, such as a confusion matrix.
- `sets`, `set_likelihood`, `proposals`: choices and rankings. `panels` and `panel_*`: a vector of
  each judge. `joint_plan`, `joint`, `ties`: several kinds of judgement.
- `moves`, `line`, `collapsed`, `local`, `label_switching`: other steps of a sweep.
- `laplace`, `laplace_classes`, `integrated`, `integrated_site`, `scales`, `tables`: draws of EM.
"""
