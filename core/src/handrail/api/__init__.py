"""Values and interfaces that plugin authors use; nothing here runs a call."""
