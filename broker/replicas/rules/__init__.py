"""Rules for leadership, ISR and high watermark of one replica: pure, no input or output."""
