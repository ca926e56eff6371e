"""Parts that the trees of all platforms share: the interface of the service, roles, and the text of a tree."""
