"""Rules of the HTTP administration: whom it answers, what its document says. No input and output."""
