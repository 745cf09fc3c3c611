"""A research lab for speculative decoding and other speed-ups with llama.cpp.

The folders are the flow, and imports go one way only::

    setup, inputs  <-  backends, machine  <-  measure  <-  analyse  <-  show

``setup`` finds or builds the engine and the models; ``inputs`` reads what people
write; ``backends`` talk to a running model; ``machine`` observes the hardware;
``measure`` plans, carries out and records; ``analyse`` turns records into estimates
and findings; ``show`` draws what was computed. ``experiments`` names what each
notebook measures, ``reproduce`` runs the notebooks, ``cli`` is the thin front.
"""
