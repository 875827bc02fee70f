"""What each mechanism of SASL asks of a client."""
