"""The ways to search for components; methods/ has one file per method."""
