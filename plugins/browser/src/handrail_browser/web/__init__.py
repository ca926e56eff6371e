"""`web_fetch`: pages and other texts by their addresses."""
