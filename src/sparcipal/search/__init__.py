"""The search for components: methods/ has one file per name of `method=`, found by registry.py.

The other files hold tools that several methods share, or a part of one that stands by itself.
"""
