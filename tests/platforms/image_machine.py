"""The project's image, built by buildah and run by podman: no daemon, no registry.

All files are in one folder of the user's cache. A second call builds nothing if the content of the
image has not changed.
"""

import fcntl
import functools
import hashlib
import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = "trixie"
REPOSITORY = "localhost/amazon-reviews"
STORE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amazon-reviews/containers"
)
# Variables for the access to packages; a build has only the environment of its base image.
PASSED = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_HTTP_TIMEOUT"),
)
FREE_BYTES = 14 << 30  # the stage with the compiler, the last stage and the image
BUNDLE = "/etc/ssl/certs/of-the-host.pem"
# crun 1.8 requires cgroup 2 at this place, and many machines have it elsewhere or not at all. The
# mount is seen by this process and its children only.
_WITH_CGROUP = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    'mount -t cgroup2 none /sys/fs/cgroup && exec podman "$@"',
    "podman",
)
_RESTRICTED = (
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp:mode=1777", "--cap-drop=all"),
    *("--security-opt=no-new-privileges", "--network=host", "--cgroups=disabled"),
)


@functools.cache
def built_image():
    """Return the name of the image of this checkout, for `run_in_image`; build it if it is missing.

    If images cannot be built on this machine, the calling test is skipped. A build that fails is a
    failure.
    """
    if os.geteuid() != 0 or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("building the image needs root on Linux on x86_64")
    if Path("/.fresh-machine").exists():
        pytest.skip("the machine that this folder is on has built the image")
    STORE.mkdir(parents=True, exist_ok=True)
    with (STORE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install_tools()
        _settle_storage()
        # Those of killed builds, which held this lock.
        _try_buildah("rm", "--all")
        base = _base()
        name = f"{REPOSITORY}:{_digest(base.encode(), *_inputs())}"
        if not _exists(name):
            _remove_others()
            if shutil.disk_usage(STORE).free < FREE_BYTES:
                pytest.skip(f"building the image takes {FREE_BYTES >> 30} GiB of disk")
            _build(name, base)
        return name


def run_in_image(image, command, folder=None, seconds=600):
    """Run a command as the image's user in a new container, as Kubernetes runs a restricted pod.

    The root file system is read-only, the process has no capabilities and gains none, and podman's
    default seccomp profile filters its calls. /tmp is writable, as an emptyDir is.

    Args:
      folder: a folder of this machine that the container has under the same path, writable for uid
        1000.
      seconds: the time after which the container is killed.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # By default podman sets limits that only a privileged process may set.
    limits = (f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096")
    volumes = [f"--volume={folder}:{folder}"] if folder else []
    program, *arguments = command
    options = ("--rm", f"--timeout={seconds}", f"--entrypoint={program}", *limits, *volumes)
    return subprocess.run(
        [*_WITH_CGROUP, "run", *_RESTRICTED, *options, image, *arguments],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def buildah(*arguments):
    """Return the output of a command; a failure is an AssertionError with the command's errors."""
    done = _try_buildah(*arguments)
    assert done.returncode == 0, f"buildah {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout.strip()


def _try_buildah(*arguments):
    return subprocess.run(
        ["buildah", *arguments], env=_environment(), capture_output=True, text=True
    )


def _environment():
    """Return the environment of buildah, with the isolation chroot, which needs no namespaces."""
    return {
        **os.environ,
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_STORAGE_CONF": str(STORE / "storage.conf"),
    }


def _exists(image):
    return _try_buildah("inspect", "--type", "image", image).returncode == 0


# What is needed ---------------------------------------------------------------------------


def _install_tools():
    if all(shutil.which(tool) for tool in ("buildah", "podman", "debootstrap")):
        return
    packages = "buildah podman crun netavark debootstrap"
    install = f"apt-get update && apt-get install -y --no-install-recommends {packages}"
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["sh", "-c", install], env=environ, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{packages} cannot be installed: {_last(done.stderr)}")


def _settle_storage():
    """Configure the driver overlay, or vfs where overlay does not work, as on another overlay."""
    settings = STORE / "storage.conf"
    for driver in ("overlay", "vfs"):
        if not settings.exists():
            settings.write_text(
                f'[storage]\ndriver = "{driver}"\ngraphroot = "{STORE / "images"}"\n'
                f'runroot = "{STORE / "run"}"\n'
            )
        done = _try_buildah("from", "scratch")
        if done.returncode == 0:
            # The caller removes the container.
            done = _try_buildah("mount", done.stdout.strip())
        if done.returncode == 0:
            return
        settings.unlink()
        shutil.rmtree(STORE / "images", ignore_errors=True)
    pytest.skip(f"buildah cannot store images here: {_last(done.stderr)}")


def _base():
    """Return the name of a bare Debian image with this machine's access to packages."""
    environ = {name: os.environ[name] for name in PASSED if os.environ.get(name)}
    if "PIP_INDEX_URL" in environ:
        environ.setdefault("UV_DEFAULT_INDEX", environ["PIP_INDEX_URL"])
    certificates = b""
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        if not certificates and os.path.isfile(os.environ.get(name, "")):
            certificates = Path(os.environ[name]).read_bytes()
            environ |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"), BUNDLE)
    name = (
        f"localhost/debian:{SUITE}-{_digest(repr(sorted(environ.items())).encode(), certificates)}"
    )
    if _exists(name):
        return name
    folder = STORE / "base"
    shutil.rmtree(folder, ignore_errors=True)
    command = ["debootstrap", "--variant=minbase", SUITE, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Debian's packages are not available here: {_last(done.stdout)}")
    if certificates:
        inside = Path(f"{folder}{BUNDLE}")
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_bytes(certificates)
    container = buildah("from", "scratch")
    buildah("add", container, str(folder), "/")
    shutil.rmtree(folder)
    settings = [f"--env={key}={value}" for key, value in environ.items()]
    buildah("config", "--cmd", "bash", *settings, container)
    ran = _try_buildah("run", container, "--", "true")
    if ran.returncode:
        pytest.skip(f"buildah cannot run anything here: {_last(ran.stderr)}")
    buildah("commit", "--rm", container, name)
    return name


# The image --------------------------------------------------------------------------------


def _inputs():
    """Yield the content of .dockerignore, and of the files that it includes in the image."""
    ignore = ROOT / ".dockerignore"
    yield ignore.read_bytes()
    for line in ignore.read_text().splitlines():
        if line.startswith("!"):
            entry = ROOT / line[1:]
            for file in [entry] if entry.is_file() else sorted(entry.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield str(file.relative_to(ROOT)).encode()
                    yield file.read_bytes()


def _build(name, base):
    """Build the image of this checkout by the command `amazon-reviews image build`."""
    command = "from cli.command import main; main()"
    environ = {"PIPELINE_CONFIG": "sample", "PIPELINE_SET": f"cluster.image={name}"}
    done = subprocess.run(
        [sys.executable, "-c", command, "image", "build", "--tool=buildah", f"--base={base}"],
        cwd=ROOT,
        env={**_environment(), **environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"the image was not built:\n{done.stdout[-5000:]}"


def _remove_others():
    """Remove the images of earlier states of the checkout, 3 GB each, unless they are in use."""
    for other in buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines():
        if other.startswith(REPOSITORY):
            _try_buildah("rmi", other)


def _digest(*parts):
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()[:12]


def _last(text):
    return (text.strip().splitlines() or ["no output"])[-1]
