"""An application of asyncio code with the whole cluster in virtual time: `penstock_sim` of the pytest plugin."""
