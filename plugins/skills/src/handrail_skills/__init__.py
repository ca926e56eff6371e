"""Skills: instructions, workflows, tools and scripts that an agent loads when it needs them."""
