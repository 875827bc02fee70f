"""Requests that wait: for records to come, or for the high watermark to reach what they wrote."""
