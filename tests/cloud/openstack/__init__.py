"""Tests of modules of the OpenStack cloud, each in a file of the name of its module."""
