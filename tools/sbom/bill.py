"""Make the CycloneDX document of the packages that `collect` found."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools.sbom.collect import ROOT

REVISION = "org.opencontainers.image.revision"
"""The label of an image, and the property of its component, whose value is the commit."""


def package_bill(found: dict[str, Any], epoch: int) -> str:
    """Return the JSON for the Python package: it and what it requires, without extras.

    Args:
      found: what `collect` printed.
      epoch: seconds since 1970, for the document's time.
    """
    needed = {name: each for name, each in found["python"].items() if each["needed"]}
    package = needed.pop(ROOT)
    return _render(_python(package, ROOT), needed, package["requires"], [], epoch)


def image_bill(found: dict[str, Any], name: str, revision: str, epoch: int) -> str:
    """Return the JSON for an image: all of its packages of Python and of Debian.

    Args:
      name: the name of the image.
      revision: the commit that it was built from.
      found, epoch: see `package_bill`.
    """
    image = Component(
        name=name,
        version=found["python"][ROOT]["version"],
        type=ComponentType.CONTAINER,
        bom_ref=f"image:{name}",
        properties=[Property(name=REVISION, value=revision)],
    )
    debian = [
        Component(
            name=package,
            version=version,
            bom_ref=f"deb:{package}:{architecture}",
            purl=PackageURL("deb", "debian", package, version, {"arch": architecture}),
        )
        for package, version, architecture in found["debian"]
    ]
    return _render(image, found["python"], [ROOT], debian, epoch)


def _render(
    subject: Component,
    packages: dict[str, dict[str, Any]],
    direct: list[str],
    others: list[Component],
    epoch: int,
) -> str:
    bom = Bom(components=others)
    bom.metadata.component = subject
    # No present time and no random number, so that the same content gives the same document.
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    components = {name: _python(each, name) for name, each in packages.items()}
    bom.components.update(components.values())
    bom.register_dependency(subject, [*(components[name] for name in direct), *others])
    for name, each in packages.items():
        required = [components[other] for other in each["requires"] if other in components]
        bom.register_dependency(components[name], required)
    content = sorted(str(each.purl) for each in bom.components)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, "\n".join([str(subject.bom_ref), *content]))
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _python(package: dict[str, Any], name: str) -> Component:
    licenses = [LicenseFactory().make_from_string(package["license"])] if package["license"] else []
    return Component(
        name=name,
        version=package["version"],
        type=ComponentType.APPLICATION if name == ROOT else ComponentType.LIBRARY,
        licenses=licenses,
        bom_ref=f"pypi:{name}",
        purl=PackageURL("pypi", None, name, package["version"]),
    )
