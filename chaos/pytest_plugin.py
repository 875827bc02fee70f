"""The fixtures that `pip install penstock-broker` brings.

Every pytest run on a machine with Penstock loads this module, so it imports nothing but pytest: fixtures import
what they need.
"""
