"""File systems by their support for the shared memory and locks that WAL mode needs."""

from __future__ import annotations

import enum
import re
from pathlib import Path

#: File in which Linux lists its mounts.
MOUNTS = Path("/proc/self/mountinfo")

#: Local to this machine: the kernel keeps locks and shared memory for all its processes.
_LOCAL = re.compile(
    r"ext[234]|xfs|btrfs|zfs|f2fs|bcachefs|jfs|reiserfs|nilfs2|ubifs|ecryptfs"
    r"|tmpfs|ramfs|overlay|aufs|vfat|exfat|ntfs3?|fuseblk"
)
#: Shared with other machines, whose locks are not coordinated.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|orangefs|davfs|ocfs2|gfs2|vboxsf"
    r"|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone|davfs2?|smbnetfs|juicefs|gcsfuse|goofys)"
)


class Locality(enum.Enum):
    """The trust in a file system's locks and shared memory."""

    LOCAL = "local"  #: WAL works
    UNKNOWN = "unknown"  #: shared by a hypervisor or a program: a store runs without WAL
    NETWORK = "network"  #: a store can lose data


def detect_filesystem(path: Path) -> str:
    """Return the type of the file system of ``path`` (``ext4``, …); empty if unknown."""
    if not MOUNTS.exists():
        return ""
    where = path.resolve()
    best, kind = -1, ""
    for line in MOUNTS.read_text().splitlines():
        fields, _, source = line.partition(" - ")
        point = Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), fields.split()[4]))
        # A later mount covers an earlier one at the same place.
        if where.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), source.split()[0]
    return kind


def classify_filesystem(filesystem: str) -> Locality:
    """Classify a file system by its type; an empty type counts as a local disk."""
    if _NETWORK.fullmatch(filesystem):
        return Locality.NETWORK
    if not filesystem or _LOCAL.fullmatch(filesystem):
        return Locality.LOCAL
    return Locality.UNKNOWN
