"""A real IMAP server and an SMTP server for tests of mail."""
