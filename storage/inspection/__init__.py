"""Looking at the files of logs from outside: what they hold, and whether they agree with each other."""
