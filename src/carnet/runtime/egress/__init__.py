"""The one way out: addresses are judged, connections made, requests sent."""
