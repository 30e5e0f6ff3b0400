"""The JMS contract, one text run over both faces and a real broker; S-numbers are the rules a test shows."""
