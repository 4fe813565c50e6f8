"""Gates through the stock OpenFeature provider for OFREP, as any program in Python would ask for them.

Arguments: the address of `lockgate ofrep`, and whether the set is `default` or `preview`. Of the two versions 1.4.0 has A
in the preview sets and B nowhere; 1.5.0, which the cluster is to run, has A everywhere, B in the preview sets, and a new C
nowhere. The store has AtomicIncrement on and PersistedLeaseCheckpoints off. Says `ok` at the end, or fails at the first difference.
"""

import sys
import time

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode

URL, PHASE = sys.argv[1:]
PREVIEW = PHASE == "preview"
steps = 0


def same(got, want, what):
    global steps
    steps += 1
    if got != want:
        raise AssertionError(f"{what}: {got!r}, expected {want!r}")


def at(version):
    return EvaluationContext(targeting_key="python", attributes={"version": version})


def values(client):
    """What is asked for, the version, and what it is in this phase; the default is always the other value."""
    for key, version, want in [
        ("A", "1.4.0", PREVIEW),
        ("B", "1.4.0", False),
        ("A", "1.5.0", True),
        ("B", "1.5.0", PREVIEW),
        ("C", "1.5.0", False),
    ]:
        details = client.get_boolean_details(key, not want, at(version))
        same((details.value, details.error_code), (want, None), f"{key} of {version}")
        same((str(details.reason), details.variant), ("STATIC", "on" if want else "off"), f"reason of {key}")
        same(details.flag_metadata["version"], version, f"version of {key}")
    # Without a context it is the version that the cluster is to run.
    same(client.get_boolean_value("A", False), True, "A without a version")
    metadata = client.get_boolean_details("B", True, at("1.5.0")).flag_metadata
    same((metadata["stage"], metadata["owner"]), ("TechPreview", "net"), "what is known of B")
    same(metadata["featureSet"], "TechPreviewNoUpgrade" if PREVIEW else "", "the set")


def store(client):
    for key, want in [("AtomicIncrement", True), ("PersistedLeaseCheckpoints", False)]:
        details = client.get_boolean_details("store." + key, not want, at("1.4.0"))
        same((details.value, details.error_code), (want, None), f"{key} of the store")
        same((details.flag_metadata["level"], details.flag_metadata["stage"]), ("cluster", "ALPHA"), f"what {key} is")
    same("flag says off" in details.flag_metadata["heldOffBy"], True, "who holds it off")


def refusals(client):
    """The default holds, and the error says why."""
    for default in (True, False):
        for key, version, code, part in [
            ("Typo", "1.5.0", ErrorCode.FLAG_NOT_FOUND, "does not know the gate"),
            ("C", "1.4.0", ErrorCode.FLAG_NOT_FOUND, '"1.4.0" does not know the gate "C"'),
            ("store.Typo", "1.5.0", ErrorCode.FLAG_NOT_FOUND, '"AtomicIncrement"'),
            ("A", "9.9.9", ErrorCode.INVALID_CONTEXT, '"1.5.0"'),
            ("A", 5, ErrorCode.INVALID_CONTEXT, "must be a text"),
        ]:
            details = client.get_boolean_details(key, default, at(version))
            same((details.value, details.error_code), (default, code), f"{key} of {version}")
            same(part in details.error_message, True, f"{details.error_message!r} names the cause")
    wrong = client.get_string_details("A", "text", at("1.5.0"))
    same((wrong.value, wrong.error_code), ("text", ErrorCode.TYPE_MISMATCH), "a gate asked for as a text")


def main():
    api.set_provider(OFREPProvider(URL, timeout=20))
    client = api.get_client()
    # The server follows the cluster by itself; it has seen the phase when B has.
    for _ in range(600):
        details = client.get_boolean_details("B", not PREVIEW, at("1.5.0"))
        if details.error_code is None and details.value == PREVIEW:
            break
        time.sleep(0.1)
    values(client)
    store(client)
    refusals(client)
    print(f"ok {steps} checks")


main()
