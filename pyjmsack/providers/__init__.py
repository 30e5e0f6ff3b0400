"""The wire protocols, one package each; a provider never imports another."""
