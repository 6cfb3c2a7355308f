"""The bundled cloud: knows no lease; could be lifted out."""
