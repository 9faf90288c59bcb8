"""This package has one file per name of `method=`."""
