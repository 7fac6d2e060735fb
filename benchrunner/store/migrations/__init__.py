"""Schema migrations, one file for each revision; ``migrate`` runs them."""
