"""
Tolerant reader: replies of any server, normalised to the three formats.

Servers that speak a format without being OpenAI or Anthropic deviate from it in hundreds of
ways. A complete answer is read; a stream that was cut stays cut. Everything here but
``client`` and the log in ``unknowns`` is pure: parsed JSON in, parsed JSON out.
"""
