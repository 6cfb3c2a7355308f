"""Metadata of servers for their guests: the metadata service, and the files of config drives."""
