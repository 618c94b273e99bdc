"""VersionPusher: copies a blessed model to a new version, which is newer than all others."""
