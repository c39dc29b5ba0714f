"""One name per operation, with a plain-torch reference and faster implementations."""
