"""One file per name of `method=`."""
