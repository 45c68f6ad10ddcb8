"""HTTP as every room above needs it: connections, requests and their answers."""
