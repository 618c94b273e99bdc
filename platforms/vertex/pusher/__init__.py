"""VertexPusher: deploys a blessed model to an endpoint of Vertex AI and replaces the old model."""
