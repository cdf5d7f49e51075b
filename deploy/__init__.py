"""The app as a demo site: `python -m deploy` runs two replicas behind nginx (README.md in this folder)."""
