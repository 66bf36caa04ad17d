"""The manifests in deploy/kubernetes: right by their schemas, and right together.

Kubernetes' own schemas are those of the package kubernetes-validate. That of RayCluster is in no
package, so the fields that are used are listed here, from the reference of KubeRay 1.6.2 at
https://docs.ray.io/en/master/cluster/kubernetes/references/api.html. Its pods are checked as
Kubernetes' pods.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

FOLDER = Path(__file__).parent.parent / "deploy" / "kubernetes"
KUBERNETES = "1.33"


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
TEXTS = {"type": "object", "additionalProperties": TEXT}
POD = {"type": "object"}  # checked by Kubernetes' schema
CREDENTIAL = closed({"valueFrom": closed({"secretKeyRef": closed({"name": TEXT, "key": TEXT})})})
RAY_CLUSTER = closed(
    {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "metadata": closed({"name": TEXT}, {"labels": TEXTS, "annotations": TEXTS}),
        "spec": closed(
            {
                "authOptions": closed(
                    {"mode": {"enum": ["disabled", "token"]}}, {"secretName": TEXT}
                ),
                "gcsFaultToleranceOptions": closed(
                    {"redisAddress": TEXT, "redisPassword": CREDENTIAL},
                    {"redisUsername": CREDENTIAL, "externalStorageNamespace": TEXT},
                ),
                "headGroupSpec": closed(
                    {"rayStartParams": TEXTS, "template": POD},
                    {"serviceType": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}},
                ),
                "workerGroupSpecs": {
                    "type": "array",
                    "minItems": 1,
                    "items": closed(
                        {
                            "groupName": TEXT,
                            "minReplicas": COUNT,
                            "maxReplicas": COUNT,
                            "rayStartParams": TEXTS,
                            "template": POD,
                        },
                        {"replicas": COUNT, "numOfHosts": COUNT, "idleTimeoutSeconds": COUNT},
                    ),
                },
            },
            {"rayVersion": TEXT, "enableInTreeAutoscaling": {"type": "boolean"}},
        ),
    }
)


def manifests() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    found = [
        each
        for path in sorted(FOLDER.glob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text())
    ]
    assert found
    return found


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in manifests() if each["kind"] == kind]


def ray_cluster() -> dict[str, Any]:
    (found,) = of_kind("RayCluster")
    return found


def ray_pods() -> list[dict[str, Any]]:
    spec = ray_cluster()["spec"]
    return [spec["headGroupSpec"]["template"], *(g["template"] for g in spec["workerGroupSpecs"])]


def as_pod_template(template: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "pod"}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}


def test_every_manifest_of_kubernetes_is_right_by_its_schema() -> None:
    validator = pytest.importorskip("kubernetes_validate")
    checked = [each for each in manifests() if each["kind"] != "RayCluster"]
    checked += [as_pod_template(template) for template in ray_pods()]
    for each in checked:
        validator.validate(each, KUBERNETES, strict=True)
    wrong = copy.deepcopy(checked[-1])
    wrong["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(Exception, match="volumeMount"):
        validator.validate(wrong, KUBERNETES, strict=True)


def test_the_ray_cluster_has_only_fields_that_kuberay_knows() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(ray_cluster(), RAY_CLUSTER)
    wrong = copy.deepcopy(ray_cluster())
    wrong["spec"]["authOption"] = wrong["spec"].pop("authOptions")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, RAY_CLUSTER)


def test_only_pods_of_the_cluster_reach_ray_and_redis() -> None:
    own = {"matchLabels": {"ray.io/cluster": ray_cluster()["metadata"]["name"]}}
    policies = {each["metadata"]["name"]: each["spec"] for each in of_kind("NetworkPolicy")}
    (redis,) = of_kind("StatefulSet")
    labels = redis["spec"]["template"]["metadata"]["labels"]
    assert policies["bitweigh-ray"]["podSelector"] == own
    assert policies["bitweigh-redis"]["podSelector"] == {"matchLabels": labels}
    for policy in policies.values():
        assert policy["policyTypes"] == ["Ingress"]
        assert [rule["from"] for rule in policy["ingress"]] == [[{"podSelector": own}]]
    assert ray_cluster()["spec"]["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert [each["spec"]["type"] for each in of_kind("Service")] == ["ClusterIP"]


def test_a_token_is_required_and_no_secret_is_in_a_manifest() -> None:
    options = ray_cluster()["spec"]["authOptions"]
    assert options == {"mode": "token", "secretName": "bitweigh-token"}
    assert of_kind("Secret") == []
    for template in ray_pods():
        for container in template["spec"]["containers"]:
            assert not any("RAY_AUTH" in each["name"] for each in container.get("env", []))


def test_what_manifests_name_is_there() -> None:
    names = {(each["kind"], each["metadata"]["name"]) for each in manifests()}
    ft = ray_cluster()["spec"]["gcsFaultToleranceOptions"]
    host, _, port = ft["redisAddress"].partition(":")
    (service,) = of_kind("Service")
    assert (host, int(port)) == (service["metadata"]["name"], service["spec"]["ports"][0]["port"])
    (redis,) = of_kind("StatefulSet")
    (container,) = redis["spec"]["template"]["spec"]["containers"]
    assert container["env"][0]["valueFrom"] == ft["redisPassword"]["valueFrom"]
    for template in ray_pods():
        (container,) = template["spec"]["containers"]
        for source in container["envFrom"]:
            assert ("ConfigMap", source["configMapRef"]["name"]) in names
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert set(mounts) == {each["name"] for each in template["spec"]["volumes"]}
        (settings,) = of_kind("ConfigMap")
        assert mounts["cache"] == settings["data"]["BITWEIGH_CACHE"]


def test_all_pods_have_the_ray_that_is_required_and_run_without_privileges() -> None:
    version = ray_cluster()["spec"]["rayVersion"]
    assert f"rayproject/ray:{version}-" in (FOLDER / "Dockerfile").read_text()
    assert tuple(map(int, version.split(".")))[:2] >= (2, 60)
    images = set()
    for template in ray_pods():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            images.add(container["image"])
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert len(images) == 1
