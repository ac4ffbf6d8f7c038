"""What mats does: enrich what changed, answer what is asked, look one up, repair. Each reads as a paragraph."""
