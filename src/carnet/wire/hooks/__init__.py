"""Requests by which another program tells that something has happened: how they are believed."""
