"""All runs, datasets and bundles under a folder, as pages of a small server."""
