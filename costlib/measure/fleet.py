"""A fleet: many devices behind a tracker, each with a process here that talks to it.

A device that dies, hangs or whose canaries are off is dropped, and its job goes to another one.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from costlib.errors import InputError, MeasureError
from costlib.hardware import Hardware
from costlib.measure.config import Job, Outcome
from costlib.measure.device import Tracker
from costlib.measure.link import Device, DeviceLostError
from costlib.tvm_compat import rpc
from costlib.tvm_compat.link import is_foreign

START_SECS = 120.0
"""How long a device may take to answer at all."""

_SEARCH_SECS = 10.0
"""How often to look for devices that have become free."""

_PATIENCE = 2
"""Times in a row that a device may be off, and devices that a job may cost."""

_log = logging.getLogger(__name__)


class Fleet(AbstractContextManager["Fleet"]):
    """The devices that a tracker has for a key; use as a context manager.

    Parameters
    ----------
    tracker
        Where they are.

    Attributes
    ----------
    devices
        Those at hand.
    dropped
        Why others are not, by their ids.

    Raises
    ------
    InputError
        There is no tracker.
    MeasureError
        It has no usable device.
    """

    def __init__(self, tracker: Tracker) -> None:
        tracker.check()
        self._tracker = tracker
        self._refused = ""
        self._searched = -math.inf
        self.devices: list[Device] = []
        self.dropped: dict[str, str] = {}
        self.gather()
        if not self.devices:
            reason = f" ({self._refused})" if self._refused else ""
            raise MeasureError(
                f"the tracker has no free device with the key '{tracker.key}'{reason}; "
                "start `costlib serve` on one"
            )

    def __exit__(self, *_: object) -> None:
        for device in self.devices:
            device.leave()

    def hardware(self) -> list[Hardware]:
        """Return the kinds of devices that there are."""
        return list({d.hardware.hardware_id: d.hardware for d in self.devices}.values())

    def only_hardware(self) -> Hardware:
        """Return the kind of all devices.

        Raises
        ------
        InputError
            There are several.
        """
        kinds = self.hardware()
        if len(kinds) > 1:
            names = ", ".join(hardware.hardware_id for hardware in kinds)
            raise InputError(
                f"the key '{self._tracker.key}' stands for several kinds of devices ({names}); "
                "give each kind a key of its own"
            )
        return kinds[0]

    def of(self, hardware: Hardware) -> list[Device]:
        """Return the devices of one kind."""
        return [d for d in self.devices if d.hardware.hardware_id == hardware.hardware_id]

    def pool(self, hardware: Hardware) -> DevicePool:
        """Return what runs jobs on the devices of one kind."""
        return DevicePool(self, hardware)

    def gather(self) -> None:
        """Take in the devices that are free by now; looks for them now and then only."""
        if time.monotonic() - self._searched < _SEARCH_SECS:
            return
        try:
            free = rpc.free_devices(self._tracker.address, self._tracker.key)
        except (RuntimeError, OSError):
            free = 0  # Without a tracker those that are at hand go on.
        deadline = time.monotonic() + START_SECS
        for device in [Device(self._tracker) for _ in range(free)]:
            try:
                device.enrol(deadline)
            except DeviceLostError as error:
                self._refused = str(error)
                device.leave()
                continue
            if device.description.device_id in self.dropped:
                device.leave()
            else:
                self._forget(device.description.device_id)
                self.devices.append(device)
        self._searched = time.monotonic()

    def _forget(self, device_id: str) -> None:
        """Let go of a session that broke off: a device that is free again is in no other."""
        for device in self.devices:
            if device.description.device_id == device_id:
                device.leave()
        self.devices = [d for d in self.devices if d.description.device_id != device_id]

    def drop(self, device: Device, reason: str) -> None:
        """Do without a device from now on."""
        if device in self.devices:
            self.devices.remove(device)
            self.dropped[device.description.device_id] = reason
            _log.warning("without %s from now on: %s", device.name, reason)
        device.leave()


class DevicePool:
    """Runs jobs on a fleet's devices of one kind, each on one that is free; for several threads."""

    def __init__(self, fleet: Fleet, hardware: Hardware) -> None:
        self.hardware = hardware
        self._fleet = fleet
        self._busy: set[int] = set()
        self._changed = threading.Condition()

    @property
    def target(self) -> dict[str, Any]:
        """What to build for: the devices' target, and their machine code if it is not ours."""
        devices = self._fleet.of(self.hardware)
        if not devices:
            raise self._nobody()
        triple = devices[0].description.triple
        return self.hardware.target | ({"mtriple": triple} if is_foreign(triple) else {})

    def gather(self) -> int:
        """Look for new devices; return how many there are."""
        self._fleet.gather()
        return len(self._fleet.of(self.hardware))

    def run(self, job: Job) -> Outcome:
        """Do a job on the next device that is free.

        A job that costs two devices is given up: it may be the cause. A device with a fault of its
        own, such as a full disk, is dropped, and that does not count.

        Raises
        ------
        MeasureError
            There is no device left.
        """
        lost = 0
        while lost < _PATIENCE:
            with self._taken() as device:
                outcome = self._attempt(device, job)
                if outcome is not None and outcome.fault is not None:
                    self._fleet.drop(device, outcome.fault)
                    continue
            if outcome is not None:
                return outcome
            lost += device not in self._fleet.devices
        return Outcome(error=f"cost {_PATIENCE} devices")

    def _attempt(self, device: Device, job: Job) -> Outcome | None:
        """Return a sound outcome, or none; a device that gives none too often is dropped."""
        try:
            outcome = device.work(job)
        except DeviceLostError as error:
            self._fleet.drop(device, str(error))
            return None
        if outcome.timing is None or not device.is_off(outcome.timing):
            device.strikes = 0
            return outcome
        device.strikes += 1
        if device.strikes == _PATIENCE:
            self._fleet.drop(device, "its canaries are off")
        return None

    @contextmanager
    def _taken(self) -> Iterator[Device]:
        """Wait for a device that is free; it is the caller's alone for that time."""
        with self._changed:
            self._changed.wait_for(lambda: self._free() or not self._fleet.of(self.hardware))
            if not (free := self._free()):
                raise self._nobody()
            device = free[0]
            self._busy.add(id(device))
        try:
            yield device
        finally:
            with self._changed:
                self._busy.discard(id(device))
                self._changed.notify_all()

    def _free(self) -> list[Device]:
        return [d for d in self._fleet.of(self.hardware) if id(d) not in self._busy]

    def _nobody(self) -> MeasureError:
        reasons = "; ".join(sorted(set(self._fleet.dropped.values()))) or "none has come back"
        return MeasureError(
            f"no device of {self.hardware.hardware_id} is left ({reasons}); "
            "what was measured is kept: start `costlib serve` again and go on"
        )
