"""Tests of the door for features, with a third-party plugin that adds one of each kind."""
