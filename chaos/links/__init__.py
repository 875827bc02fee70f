"""The links of real nodes, each through a proxy of its own, and what is done to them."""
