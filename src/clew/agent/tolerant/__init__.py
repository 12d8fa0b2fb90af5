"""
The tolerant reader: replies of any server as the three formats define them.

Servers that speak a format without being OpenAI or Anthropic deviate from it in hundreds of ways.
Where the words of an answer are whole it is read; a stream that was cut stays cut. Everything here
but ``client`` is pure: parsed JSON in, parsed JSON out.
"""
