"""Publish and subscribe: channels, patterns, those who listen, and what the store's changes tell.

    subscriptions.py   what one client listens to    broker.py   who gets a message
    notifications.py   which changes are published, under which channels

Knows no connection: a listener is anything that messages can be delivered to.
"""
