"""scripts/verify-tag.sh accepts a tag that a maintainer has signed, on main, for the version of its commit."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.processes import environment
from tests.patience import PATIENCE
from tests.requirements import require

ROOT = Path(__file__).parents[2]
VERSION = "7.8.9"
TAG = f"v{VERSION}"
IDENTITY = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]


@dataclass
class Repository:
    """A clone with the script, and the repository from which it fetches.

    Attributes:
        folder: The clone.
        key: The key that is allowed to sign.
        other_key: A key that is not.
    """

    folder: Path
    key: Path
    other_key: Path

    def git(self, *arguments: str) -> None:
        """Run git in the clone."""
        subprocess.run(
            ["git", *IDENTITY, *arguments], cwd=self.folder, check=True, capture_output=True, timeout=PATIENCE
        )

    def sign(self, key: Path, tag: str = TAG) -> None:
        """Sign a tag and push it."""
        self.git("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}", "tag", "--sign", tag, "--message", tag)
        self.git("push", "origin", tag)

    def verify(self, tag: str = TAG) -> subprocess.CompletedProcess[str]:
        """Verify a tag."""
        command = [str(self.folder / "scripts" / "verify-tag.sh"), tag]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return a repository whose main has a version."""
    require("ssh-keygen", shutil.which("ssh-keygen"))
    keys = [tmp_path / "allowed", tmp_path / "other"]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=PATIENCE)
    folder = tmp_path / "clone"
    (folder / "scripts").mkdir(parents=True)
    (folder / ".github").mkdir()
    shutil.copy(ROOT / "scripts" / "verify-tag.sh", folder / "scripts")
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{VERSION}"\n')
    signer = keys[0].with_suffix(".pub").read_text()
    (folder / ".github" / "allowed_signers").write_text(
        f'{(ROOT / ".github" / "allowed_signers").read_text()}ada@example.com namespaces="git" {signer}'
    )
    clone = Repository(folder, *keys)
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "origin"], check=True, timeout=PATIENCE)
    clone.git("init", "--quiet", "--initial-branch", "main")
    clone.git("remote", "add", "origin", str(tmp_path / "origin"))
    clone.git("add", ".")
    clone.git("commit", "--message", "Release")
    clone.git("push", "origin", "main")
    return clone


def test_a_tag_that_a_maintainer_has_signed_is_verified(repository: Repository) -> None:
    repository.sign(repository.key)
    result = repository.verify()
    assert result.returncode == 0, result.stderr
    assert 'Good "git" signature for ada@example.com' in result.stderr


def test_the_tag_of_origin_counts(repository: Repository) -> None:
    """actions/checkout leaves a tag without its signature."""
    repository.sign(repository.key)
    repository.git("tag", "--delete", TAG)
    repository.git("tag", TAG)
    assert repository.verify().returncode == 0


def test_a_tag_without_a_signature_is_refused(repository: Repository) -> None:
    repository.git("tag", "--annotate", TAG, "--message", TAG)
    repository.git("push", "origin", TAG)
    assert repository.verify().returncode != 0


def test_a_tag_with_the_signature_of_another_key_is_refused(repository: Repository) -> None:
    repository.sign(repository.other_key)
    result = repository.verify()
    assert result.returncode != 0
    assert "No principal matched" in result.stderr


def test_a_tag_that_was_moved_after_the_checkout_is_refused(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    repository.git("commit", "--allow-empty", "--message", "Not signed")
    repository.git("checkout", "--quiet", "main")
    repository.sign(repository.key)
    repository.git("checkout", "--quiet", "other")
    result = repository.verify()
    assert result.returncode != 0
    assert f"{TAG} is not the commit of this folder." in result.stderr


def test_a_tag_beside_main_is_refused(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    repository.git("commit", "--allow-empty", "--message", "Beside main")
    repository.sign(repository.key)
    result = repository.verify()
    assert result.returncode != 0
    assert f"{TAG} is not on main." in result.stderr


def test_a_tag_of_another_version_is_refused(repository: Repository) -> None:
    repository.sign(repository.key, "v7.8.10")
    result = repository.verify("v7.8.10")
    assert result.returncode != 0
    assert "v7.8.10 is not the version in pyproject.toml." in result.stderr
