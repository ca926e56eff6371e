"""Computer use: a backend that plans actions, and the tool that has them judged and carried out."""
