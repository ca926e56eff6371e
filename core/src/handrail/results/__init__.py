"""What a call gives, and how a host tells a model of it."""
