"""What launches leave behind when asked: their arguments on disk (`dump`), who ran when (`trace`)."""
