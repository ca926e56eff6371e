"""What every platform's tree has in common: the interface of the service, roles, and how a tree is worded."""
