"""Leadership, ISR and high watermark of one replica: rules only."""
