"""MCP: conversations for programs that speak the Model Context Protocol."""
