"""Images: content, snapshots, quota, orphaned files."""
