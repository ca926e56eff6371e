"""Undo, call by call: what calls change in files is kept before they change it, and can be put back.

states          what is at a path: kind, mode, contents, target of a link
coverage        which folders are kept, and which are left out as generated or as a repository's own
store           contents, states, calls and their changes, in a database outside the workspace
disk_pass       one look at the disk: what differs from what is known, with new contents kept
change_watch    the folders in which something changed since the last look
keeper          begins and ends the record of a call, in one thread
plans, restore  what undoing a call would do, and doing it
call_changes    the session's side: which calls are recorded, and what their results say of it
"""
