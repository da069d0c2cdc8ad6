"""Imports every family of commands, and so fills the table. A new family is one line here."""

import commands.acl
import commands.administration
import commands.clients
import commands.config
import commands.connection
import commands.datasets
import commands.info
import commands.introspection
import commands.keyspace
import commands.latency
import commands.memory
import commands.pubsub
import commands.server
import commands.slow_log
import commands.standalone
import commands.transactions
import commands.wide_column
