"""Values of the bundled cloud: servers, flavors, images, nodes, boot requests."""
