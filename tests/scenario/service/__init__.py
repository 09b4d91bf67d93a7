"""One service, faults switched on by name. See part.py for how, app.py for what it serves."""
