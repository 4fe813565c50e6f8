"""A custom resource from its definition to its end, through the dynamic API of Kubernetes' Python client.

Says `ok` at the end, or fails at the first difference.
"""

import sys
import threading

from kubernetes import config, dynamic
from kubernetes.client import ApiClient, ApiextensionsV1Api, CustomObjectsApi
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

GROUP = "py.example.com"
DEFINITION = "toys." + GROUP
GATE = {"name": "Size", "preRelease": "alpha", "enabled": False, "fieldPaths": [".spec.size"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["color"],
            "properties": {"color": {"type": "string"}, "size": {"type": "integer", "maximum": 9}},
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
steps = 0


def same(got, want, what):
    global steps
    steps += 1
    if got != want:
        raise AssertionError(f"{what}: {got!r}, expected {want!r}")


def refused(error, what, call):
    global steps
    steps += 1
    try:
        answer = call()
    except error as refusal:
        return refusal
    raise AssertionError(f"{what}: taken: {answer}")


def definition():
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": SCHEMA},
    }
    names = {"plural": "toys", "singular": "toy", "kind": "Toy"}
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": names,
        "customFeatureGates": {"featureGates": [GATE]},
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": spec,
    }


def toy(name, **spec):
    return {"apiVersion": GROUP + "/v1", "kind": "Toy", "metadata": {"name": name}, "spec": {"color": "red", **spec}}


def define(client):
    definitions = client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definitions.create(body=definition())
    for event in definitions.watch(name=DEFINITION, timeout=20):
        conditions = event["object"].status.conditions or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    else:
        raise AssertionError("the definition is not established")
    client.resources.invalidate_cache()
    return definitions, client.resources.get(api_version=GROUP + "/v1", kind="Toy")


def write(toys):
    made = toys.create(body=toy("a", size=5), namespace="default")
    same((made.metadata.generation, made.spec.size), (1, None), "created with the gate off")
    refused(ConflictError, "the same again", lambda: toys.create(body=toy("a"), namespace="default"))
    bad = refused(UnprocessibleEntityError, "a wrong type", lambda: toys.create(body=toy("b", color=1), namespace="default"))
    same("spec.color" in str(bad.body), True, "the refusal names the field")
    patch = {"spec": {"color": "blue", "size": 3}}
    patched = toys.patch(name="a", body=patch, namespace="default", content_type="application/merge-patch+json")
    same((patched.spec.color, patched.spec.size, patched.metadata.generation), ("blue", None, 2), "patched")
    old = patched.to_dict()
    replaced = toys.replace(body={**old, "spec": {"color": "green"}}, namespace="default")
    same((replaced.spec.color, replaced.metadata.generation), ("green", 3), "replaced")
    refused(ConflictError, "an old version", lambda: toys.replace(body=old, namespace="default"))
    status = toys.status.patch(
        name="a", body={"status": {"phase": "Ready"}}, namespace="default", content_type="application/merge-patch+json"
    )
    same((status.status.phase, status.metadata.generation), ("Ready", 3), "a status")


def flip(definitions, toys):
    on = {"spec": {"customFeatureGates": {"featureGates": [{**GATE, "enabled": True}]}}}
    definitions.patch(name=DEFINITION, body=on, content_type="application/merge-patch+json")
    applied = toys.server_side_apply(
        body=toy("a", color="green", size=4), namespace="default", field_manager="python", force_conflicts=True
    )
    same((applied.spec.size, applied.metadata.generation), (4, 4), "applied with the gate on")
    off = {"spec": {"customFeatureGates": {"featureGates": [GATE]}}}
    definitions.patch(name=DEFINITION, body=off, content_type="application/merge-patch+json")
    applied = toys.server_side_apply(
        body=toy("a", color="green", size=6), namespace="default", field_manager="python"
    )
    same((applied.spec.size, applied.metadata.generation), (4, 4), "applied with the gate off")


def watch(toys):
    version = toys.get(namespace="default").metadata.resourceVersion
    seen = []

    def look():
        for event in toys.watch(namespace="default", resource_version=version, timeout=20):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 4:
                break

    looking = threading.Thread(target=look)
    looking.start()
    toys.create(body=toy("w"), namespace="default")
    patch = {"metadata": {"labels": {"x": "y"}}}
    toys.patch(name="w", body=patch, namespace="default", content_type="application/merge-patch+json")
    toys.delete(name="w", namespace="default")
    toys.create(body=toy("v"), namespace="default")
    looking.join(timeout=30)
    same(seen, [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w"), ("ADDED", "v")], "a watch")


def listed(client, toys):
    for i in range(5):
        toys.create(body=toy(f"l{i}") | {"metadata": {"name": f"l{i}", "labels": {"of": "list"}}}, namespace="default")
    page = toys.get(namespace="default", label_selector="of=list", limit=3)
    same([item.metadata.name for item in page.items], ["l0", "l1", "l2"], "a page")
    rest = toys.get(namespace="default", label_selector="of=list", limit=3, _continue=page.metadata["continue"])
    same([item.metadata.name for item in rest.items], ["l3", "l4"], "the next page")
    other = CustomObjectsApi(client)
    found = other.list_namespaced_custom_object(GROUP, "v1", "default", "toys", field_selector="metadata.name=l4")
    same([item["metadata"]["name"] for item in found["items"]], ["l4"], "the custom objects API")
    toys.delete(namespace="default", label_selector="of=list")
    same(len(toys.get(namespace="default", label_selector="of=list").items), 0, "deleted by label")


def typed(client):
    """The typed API drops the gates, which it does not know, on its way; they must stay."""
    definitions = ApiextensionsV1Api(client)
    read = definitions.read_custom_resource_definition(DEFINITION)
    read.metadata.labels = {"by": "python"}
    definitions.replace_custom_resource_definition(DEFINITION, read)
    raw = CustomObjectsApi(client).get_cluster_custom_object(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", DEFINITION
    )
    same(raw["spec"]["customFeatureGates"]["featureGates"][0]["name"], "Size", "gates after a typed replace")


def main():
    client = ApiClient(config.load_kube_config(config_file=sys.argv[1]) or config.kube_config.Configuration.get_default_copy())
    api = dynamic.DynamicClient(client)
    definitions, toys = define(api)
    write(toys)
    flip(definitions, toys)
    watch(toys)
    listed(client, toys)
    typed(client)
    definitions.delete(name=DEFINITION)
    for _ in range(200):
        try:
            definitions.get(name=DEFINITION)
        except NotFoundError:
            break
        threading.Event().wait(0.05)
    else:
        raise AssertionError("the definition does not go")
    print(f"ok {steps} checks")


main()
