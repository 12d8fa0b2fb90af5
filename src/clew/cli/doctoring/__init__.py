"""The checks of ``clew doctor``: each looks at one thing and tells what it found."""
