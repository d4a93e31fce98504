"""Other engines that run a network, each in a process of its own, to be timed beside ours.

- :mod:`~costlib.tuning.engines.catalogue`: which there are;
- :mod:`~costlib.tuning.engines.handover`: what they are given, in files;
- :mod:`~costlib.tuning.engines.process`: the process, and our end of it;
- :mod:`~costlib.tuning.engines.loading`: what each of them does with a network.
"""
