"""VertexPusher: a blessed model to an endpoint of Vertex AI, in the place of the one before."""
