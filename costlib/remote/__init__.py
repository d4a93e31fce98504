"""Folders elsewhere, by their address: ``hf://user/name``, ``s3://bucket/name`` and the like.

- :mod:`~costlib.remote.address`: what an address is, and where what was fetched from it is kept;
- :mod:`~costlib.remote.cache`: what is kept, listed and removed;
- :mod:`~costlib.remote.place`: what can be done at one;
- :mod:`~costlib.remote.hugging_face`, :mod:`~costlib.remote.file_system`: how;
- :mod:`~costlib.remote.mirror`: a copy that is kept up to date.

What is published, and in which order, is up to the callers: datasets
(:mod:`costlib.data.remote`) and bundles (:mod:`costlib.hub.remote`).
"""
