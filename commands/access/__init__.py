"""Who may do what: users, their passwords and permissions, in Redis's ACL rule language.

    vocabulary.py    the names in rules, and the commands each stands for
    command_rules.py which commands      permissions.py  which commands, datasets and channels
    user.py          one user            rules.py        the rule language: read and written
    users.py         all users           user_file.py    the ACL file: read and written
    denials.py       what ACL LOG tells

Knows commands by their declarations, no handler and no client. users.py is the entrance.
"""
