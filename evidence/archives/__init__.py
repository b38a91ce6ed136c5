"""Archives: copies of the logs in object storage, where anybody with the files can verify them without the hub."""
