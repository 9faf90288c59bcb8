"""This package searches for components; methods/ has one file per name of `method=`.

registry.py finds them. The other files hold tools that several methods share, or a separate part
of one method.
"""
