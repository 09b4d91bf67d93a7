"""Services that leak on purpose, their clean twins, and what it takes to run them. See README.md."""
