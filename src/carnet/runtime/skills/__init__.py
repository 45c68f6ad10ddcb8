"""Skills: their definition, their functions, the types of what goes in and comes out."""
