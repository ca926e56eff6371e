"""One agent's session and the runtime it belongs to: the parts of all other packages put together, and what plugins are given of them."""
