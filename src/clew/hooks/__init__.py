"""What plugins may implement, and how they are called."""
