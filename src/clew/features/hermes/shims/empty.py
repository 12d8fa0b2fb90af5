"""A package of Hermes Agent; Clew has some of its modules."""
