"""
Random updates of the platforms, built from their published schemas, and what must become of each.

``KINDS`` of each platform names every content type; an update is made of one of them, often with
replies, forwards and quotations around it, and with texts that try to pass for something else.
"""
