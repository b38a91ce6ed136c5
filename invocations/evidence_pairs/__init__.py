"""Evidence pairs: each call has its Begin, each ended call its End; which calls are open."""
