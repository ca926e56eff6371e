"""Codes by which the judge of commands and their results know each other's words."""

# The rule of a verdict on a command that does nothing but read.
SHELL_RULE = "shell"
# Reasons of an allowed command that its result repeats: programs saw the sandbox in place of the system; git could not change a repository.
INSPECTS_INSIDE = "inspects_inside"
KEEPS_GIT = "keeps_git"
